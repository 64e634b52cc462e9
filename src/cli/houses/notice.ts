import { Command, Option } from "commander";
import { UsageError } from "../../errors.ts";
import { NOTICE_ORDER } from "../../rounds/notices/notices.ts";
import { endNotice, LONGEST_NOTICE, writeNotice } from "../../corrections/operator-notice.ts";
import { listNotices } from "../../corrections/operator-notice-store.ts";
import { examples, houseId, someText, tableName } from "../arguments.ts";
import { type Chosen, chosenTables } from "./chosen-tables.ts";
import { inState, listCommand, ofTables, oneOf } from "../list-command.ts";
import { shortTime } from "../output.ts";
import { decisionCommand, type Given } from "../decision.ts";
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
  const write = command
    .command("write")
    .description("publish a notice on a table, or on all tables of a house; replaces the open one")
    .argument("<text>", `the text, at most ${LONGEST_NOTICE} characters`, someText)
    .addOption(new Option("--house <id>", "all tables of this house").argParser(houseId).conflicts("table"))
    .option("--table <house/game/market>", "one table", tableName)
    .requiredOption("--reason <text>", "why, for the audit log", someText)
    .addHelpText(
      "after",
      examples('notice write "the house moves its servers until noon UTC" --house bustabit --reason "they mailed us"'),
    );
  write.hook("preAction", () => checkNotice(write.processedArgs[0], write.opts()));
  decisionCommand(write, {
    action: "notice.write",
    isPublished: true,
    async decide(tx, { subject: text, by, ...chosen }: Given<string, Chosen>) {
      return writeNotice(tx, (await chosenTables(tx, chosen)) ?? [], { text, by });
    },
    json: ({ tables }, { subject: text }) => ({ tables, text }),
  });
}

/** @throws UsageError before the database is searched for */
function checkNotice(text: string, { house, table }: Chosen): void {
  if (house === undefined && table === undefined) throw new UsageError("expected --house or --table: whom it is about");
  if (text.length > LONGEST_NOTICE)
    throw new UsageError(`<text>: expected at most ${LONGEST_NOTICE} characters, got ${text.length}`);
}

function addEnd(command: Command): void {
  const end = command
    .command("end")
    .description("close the notice that `notice write` published on a table")
    .requiredOption("--table <house/game/market>", "the table", tableName)
    .requiredOption("--reason <text>", "why, for the audit log", someText)
    .addHelpText("after", examples('notice end --table bustabit/crash/global --reason "they are back"'));
  decisionCommand(end, {
    action: "notice.end",
    isPublished: true,
    async decide(tx, { table, by }: Given<undefined, { table: string }>) {
      const { id } = await findTableByName(tx, table);
      return endNotice(tx, id, { by });
    },
    json: ({ before }, { table }) => ({ table, ended: before }),
  });
}
