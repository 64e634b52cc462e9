import { Command, InvalidArgumentError } from "commander";
import { listNotices } from "../../corrections/operator-notice-store.ts";
import { readDay } from "../../forecasts/accuracy/measured-store.ts";
import { readHouses } from "../../health/house-facts-store.ts";
import {
  findTableDetail,
  type OpenGaps,
  readOpen,
  readOpenGaps,
  readTableHeads,
  tableName as nameOf,
} from "../../health/table-facts-store.ts";
import { statusOf } from "../../houses/status.ts";
import { NOTICE_ORDER } from "../../rounds/notices/notices.ts";
import { resetNewestNumber } from "../../corrections/reset-newest.ts";
import { numberOf } from "../../rounds/round.ts";
import { createLog } from "../../log.ts";
import { closeDamageAlert } from "../../pass/damage.ts";
import { repairTable } from "../../verify/repair.ts";
import { examples, someText, tableName } from "../arguments.ts";
import { listCommand } from "../list-command.ts";
import { decide, decisionCommand, type Given } from "../decision.ts";
import { coloredStatus, print, printJson, printTable, shortTime } from "../output.ts";
import { progressBar } from "../progress.ts";
import { type Session, withDatabase } from "../session.ts";
import { findTableByName } from "../table-name.ts";

/** `roundhouse table …`: every table, its health, and repairs. */
export function tableCommand(): Command {
  const command = new Command("table")
    .description("the tables: one house, game and market each")
    .addHelpText(
      "after",
      examples(
        "table list",
        "table show bustabit/crash/global",
        'table repair bustabit/crash/global --reason "its snapshot does not hash"',
      ),
    );
  addList(command);
  command
    .command("show")
    .description("show a table: status, newest round, missing rounds, open notices, model and recent accuracy")
    .argument("<house/game/market>", "the table", tableName)
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples("table show bustabit/crash/global", "table show bustabit/crash/global --json"))
    .action(show);
  addResetNewest(command);
  command
    .command("repair")
    .description("rebuild the snapshot, head and accuracy of a damaged table from its rounds, forecasts and scores")
    .argument("<house/game/market>", "the table", tableName)
    .requiredOption("--reason <text>", "why", someText)
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples('table repair bustabit/crash/global --reason "its snapshot does not hash"'))
    .action(repair);
  return command;
}

function addResetNewest(command: Command): void {
  const reset = command
    .command("reset-newest")
    .description("reset the newest round of a table, if its number or time is wrong and every round since is late")
    .argument("<house/game/market>", "the table", tableName)
    .option(
      "--to <number>",
      "the number of its newest true round; without it the highest that arrived late; none if ids are opaque",
      numberText,
    )
    .addHelpText("after", examples('table reset-newest bustabit/crash/global --reason "one response had 9001007"'));
  decisionCommand(reset, {
    action: "table.reset-newest",
    isPublished: true,
    async decide(tx, { subject: name, to, by, reason }: Given<string, { to?: bigint }>) {
      const { id } = await findTableByName(tx, name);
      return resetNewestNumber(tx, id, { to: to ?? null, by, reason });
    },
    json: ({ table, from, to }) => ({ table, before: from, after: to }),
  });
}

function addList(command: Command): void {
  listCommand(command, {
    description: "list tables: status, newest round, rounds, open gaps, and the share of rounds with a forecast",
    examples: ["table list", "table list --json"],
    async read(session) {
      const tables = await readListed(session, readOpenGaps(session.sql));
      return tables.map(({ listed }) => listed);
    },
    columns: [
      ["table", ({ table, simulated }) => (simulated ? `${table} (simulated)` : table)],
      ["status", (table) => coloredStatus(table.status)],
      ["newest round", (table) => shortTime(table.last_round_at)],
      ["lag", ({ lag_seconds }) => (lag_seconds === null ? null : `${lag_seconds} s`)],
      ["rounds", (table) => table.rounds],
      ["gaps", (table) => table.gaps],
      ["coverage", ({ coverage }) => (coverage === null ? null : `${(coverage * 100).toFixed(1)} %`)],
    ],
  });
}

/** All tables, or one, as both commands print them, each with its head and what is open. */
async function readListed<Open extends OpenGaps>(
  { sql, settings }: Session,
  reading: Promise<readonly Open[]>,
  one?: { id: number; name: string },
) {
  const [heads, houses, opens, days] = await Promise.all([
    readTableHeads(sql, { id: one?.id }),
    readHouses(sql, one?.name.split("/")[0]),
    reading,
    readDay(sql, one && [one.id]),
  ]);
  const houseOf = new Map(houses.map((house) => [house.id, house]));
  const openOf = new Map(opens.map((open) => [open.tableId, open]));
  const dayOf = new Map(days.map((day) => [day.tableId, day]));
  return heads.flatMap((head) => {
    const house = houseOf.get(head.house);
    if (house === undefined) return []; // added between two reads
    const { lastRoundAt, lagSeconds, rounds, enabled } = head;
    const open = openOf.get(head.id);
    const listed = {
      table: nameOf(head),
      status: statusOf({ ...house, enabled }, settings.LIVE_WINDOW_SECONDS * 1_000),
      last_round_at: lastRoundAt,
      lag_seconds: lagSeconds === null ? null : Math.max(0, Math.round(lagSeconds * 10) / 10),
      rounds,
      gaps: open?.gaps ?? 0,
      simulated: house.simulated,
      coverage: dayOf.get(head.id)?.coverage ?? null,
    };
    return { listed, head, open };
  });
}

async function show(name: string, { json }: { json: boolean }): Promise<void> {
  await withDatabase(async (session) => {
    const shown = await readShown(session, name);
    return json ? printJson(shown) : showTable(shown);
  });
}

async function readShown(session: Session, name: string) {
  const { sql } = session;
  const found = await findTableByName(sql, name);
  const ofTable = { tableIds: [found.id], kind: null, isOpen: true };
  const ofEachKind = { after: null, oldestFirst: true, limit: NOTICE_ORDER.length };
  const [[row], detail, notices] = await Promise.all([
    readListed(session, readOpen(sql, { id: found.id }), found),
    findTableDetail(sql, found.id),
    listNotices(sql, ofTable, ofEachKind),
  ]);
  if (row === undefined || detail === null)
    throw new Error(`expected the table ${name}, found none; run the command again`);
  const { listed, head, open } = row;
  return {
    ...listed,
    colors: detail.colors.map((color) => color.name),
    model: detail.model,
    newest_round: head.newestRoundId,
    on_time: detail.onTime,
    forecasts: detail.forecasts,
    last_request_at: detail.lastRequestAt,
    open: {
      gaps: listed.gaps,
      missing: open?.missing ?? 0,
      quarantined: open?.quarantine ?? 0,
      conflicts: open?.conflicts ?? 0,
      unread_payloads: detail.unreadPayloads,
    },
    notices: notices.map(({ kind, text, openedAt }) => ({ kind, text, opened_at: openedAt })),
  };
}

async function showTable(table: Awaited<ReturnType<typeof readShown>>): Promise<void> {
  const { open, notices } = table;
  await printTable(
    ["", table.table],
    [
      ["status", `${coloredStatus(table.status)}${table.simulated ? " (simulated)" : ""}`],
      ["colors", table.colors.join(", ")],
      [
        "newest round",
        table.newest_round === null ? null : `${table.newest_round} at ${shortTime(table.last_round_at)}`,
      ],
      ["lag", table.lag_seconds === null ? null : `${table.lag_seconds} s`],
      ["rounds", `${table.rounds}, of which ${table.on_time} on time`],
      ["forecasts", table.forecasts],
      ["coverage", table.coverage === null ? null : `${(table.coverage * 100).toFixed(1)} %`],
      ["model", table.model],
      ["last request", shortTime(table.last_request_at)],
      ["open gaps", `${open.gaps} (${open.missing} rounds missing)`],
      ["quarantined", open.quarantined],
      ["conflicts", open.conflicts],
      ["unread payloads", open.unread_payloads],
      ...notices.map(({ kind, text }) => [`notice: ${kind}`, text]),
    ],
  );
}

async function repair(name: string, { reason, json }: { reason: string; json: boolean }): Promise<void> {
  await withDatabase(
    async (session) => {
      const { sql, settings } = session;
      const { id } = await findTableByName(sql, name);
      const bar = progressBar();
      const { message, rounds, forecasts, isAccuracyRebuilt } = await decide(
        session,
        { action: "table.repair", reason },
        (tx) => repairTable(tx, id, (done, total) => bar.show(name, done, total)),
      ).finally(() => bar.end());
      await closeDamageAlert(sql, createLog(settings.LOG_LEVEL, process.stderr.isTTY), name);
      if (json) return printJson({ table: name, rounds, forecasts, accuracy_rebuilt: isAccuracyRebuilt });
      await print(message);
      if (isAccuracyRebuilt) await print("its accuracy was wrong and is recomputed");
    },
    { patient: true },
  );
}

function numberText(text: string): bigint {
  const number = numberOf(text);
  if (number === null) throw new InvalidArgumentError("expected the number of a round.");
  return number;
}
