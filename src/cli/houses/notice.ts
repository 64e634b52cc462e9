import { Command, Option } from "commander";
import { UsageError } from "../../errors.ts";
import { NOTICE_ORDER } from "../../rounds/notices/notices.ts";
import { endNotice, LONGEST_NOTICE, writeNotice } from "../../corrections/operator-notice.ts";
import { listNotices } from "../../corrections/operator-notice-store.ts";
import { announce } from "../announce.ts";
import { examples, houseId, someText, tableName } from "../arguments.ts";
import { auditedOrThrow } from "../audited.ts";
import { type Chosen, chosenTables } from "./chosen-tables.ts";
import { inState, listCommand, ofTables, oneOf } from "../list-command.ts";
import { operator } from "../operator.ts";
import { print, printJson, shortTime } from "../output.ts";
import { withDatabase } from "../session.ts";
import { findTableByName } from "../table-name.ts";

/** `roundhouse notice …`: notices to callers about a table's continuity. */
export function noticeCommand(): Command {
  const command = new Command("notice")
    .description("continuity notices of tables")
    .addHelpText(
      "after",
      examples("notice list --state open", 'notice end --table bustabit/crash/global --reason "they are back"'),
    );
  addList(command);
  addWrite(command);
  addEnd(command);
  return command;
}

function addList(command: Command): void {
  listCommand(command, {
    description: "notices, newest first",
    filters: {
      ...ofTables(),
      kind: oneOf("--kind <kind>", "those of one kind", NOTICE_ORDER),
      state: inState("open", "ended"),
    },
    hasLimit: true,
    examples: ["notice list --state open", "notice list --kind operator --json"],
    read: ({ sql }, { tableIds, kind, state }, newest) =>
      listNotices(sql, { tableIds, kind, isOpen: state && state === "open" }, newest),
    columns: [
      ["id", (notice) => notice.id],
      ["table", (notice) => notice.table],
      ["kind", (notice) => notice.kind],
      ["opened", (notice) => shortTime(notice.openedAt)],
      ["ended", (notice) => shortTime(notice.closedAt)],
      ["by", (notice) => notice.openedBy],
      ["text", (notice) => notice.text],
    ],
  });
}

function addWrite(command: Command): void {
  command
    .command("write")
    .description("publish a notice on a table, or on all tables of a house; replaces the open one")
    .argument("<text>", `the text, at most ${LONGEST_NOTICE} characters`, someText)
    .addOption(new Option("--house <id>", "all tables of this house").argParser(houseId).conflicts("table"))
    .option("--table <house/game/market>", "one table", tableName)
    .requiredOption("--reason <text>", "why, for the audit log", someText)
    .option("--json", "print one JSON object", false)
    .addHelpText(
      "after",
      examples('notice write "the house moves its servers until noon UTC" --house bustabit --reason "they mailed us"'),
    )
    .action((text: string, given: Chosen & { reason: string; json: boolean }) => {
      if (given.house === undefined && given.table === undefined) {
        throw new UsageError("expected --house or --table: whom it is about");
      }
      if (text.length > LONGEST_NOTICE) {
        throw new UsageError(`<text>: expected at most ${LONGEST_NOTICE} characters, got ${text.length}`);
      }
      return withDatabase(async ({ sql, settings }) => {
        const tableIds = (await chosenTables(sql, given)) ?? [];
        const { reason } = given;
        const { tables } = await auditedOrThrow(
          sql,
          (tx) => writeNotice(tx, tableIds, { text, by: operator() }),
          (done) => {
            return { action: "notice.write", target: done.tables.join(", "), before: done.before, after: text, reason };
          },
        );
        await announce(sql, settings.LOG_LEVEL);
        await (given.json ? printJson({ tables, text }) : print(`${tables.join(", ")}: ${text}`));
      });
    });
}

function addEnd(command: Command): void {
  command
    .command("end")
    .description("close the notice that `notice write` published on a table")
    .requiredOption("--table <house/game/market>", "the table", tableName)
    .requiredOption("--reason <text>", "why, for the audit log", someText)
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples('notice end --table bustabit/crash/global --reason "they are back"'))
    .action(({ table: name, reason, json }: { table: string; reason: string; json: boolean }) =>
      withDatabase(async ({ sql, settings }) => {
        const table = await findTableByName(sql, name);
        const { before } = await auditedOrThrow(
          sql,
          (tx) => endNotice(tx, table.id, { by: operator() }),
          (done) => ({ action: "notice.end", target: name, before: done.before[0], reason }),
        );
        await announce(sql, settings.LOG_LEVEL);
        await (json ? printJson({ table: name, ended: before[0] }) : print(`the notice of ${name} has ended`));
      }),
    );
}
