import { gunzipSync } from "node:zlib";
import { Command, InvalidArgumentError, Option } from "commander";
import { variablesOf } from "../../config/environment.ts";
import { UsageError } from "../../errors.ts";
import { createProver } from "../../houses/fairness/prove.ts";
import { loadHouseToRead } from "../../houses/store.ts";
import { isUtcTime } from "../../iso-time.ts";
import { findPayload, type ListedPayload, listPayloads } from "../../rounds/lists/payload-list-store.ts";
import { rereadRange } from "../../reread/reread.ts";
import { placeText, readPlace, type Reread } from "../../reread/reread-report.ts";
import { countToReread, type RereadPlace, type RereadRange } from "../../reread/reread-store.ts";
import { announce } from "../announce.ts";
import { examples, houseId, someText, tableName, wholeNumber } from "../arguments.ts";
import { appendCommandAudit } from "../audited.ts";
import { chosenTables } from "./chosen-tables.ts";
import { filter, inState, listCommand, ofTables } from "../list-command.ts";
import { withProgress } from "../long-work.ts";
import { moment } from "../time-argument.ts";
import { operator } from "../operator.ts";
import { print, printJson, snakeKeys } from "../output.ts";
import { type Session, withDatabase } from "../session.ts";
import { findTableByName } from "../table-name.ts";

/** As many as are stored for a house with a refused feed; `--after` continues. */
const MOST_PAYLOADS = 2_000;

interface RereadArguments {
  house: string;
  table?: string;
  from: string;
  to: string;
  state?: "read" | "refused";
  dryRun: boolean;
  limit: number;
  after?: RereadPlace;
  reason?: string;
  json: boolean;
}

/** `roundhouse payload …`: stored responses of houses, verbatim, and reading them again. */
export function payloadCommand(): Command {
  const command = new Command("payload")
    .description("stored responses of houses, and reading them again")
    .addHelpText(
      "after",
      examples("payload list --from 2h", "payload show bustabit/crash/global 2026-11-21T04:00:12.123456Z"),
    );
  addList(command);
  command
    .command("show")
    .description("show a payload: its request, response and outcome; the body follows on stdout")
    .argument("<table>", "its table: house/game/market", tableName)
    .argument("<received-at>", "when it was received, as `payload list` shows it", receivedTime)
    .option("--json", "print one JSON object, the body as text in it", false)
    .addHelpText("after", examples("payload show bustabit/crash/global 2026-11-21T04:00:12.123456Z"))
    .action((table: string, receivedAt: string, { json }: { json: boolean }) =>
      withDatabase((session) => show(session, { table, receivedAt, json })),
    );
  command
    .command("reread")
    .description("read stored payloads again after an adapter was repaired; new rounds are stored as late")
    .requiredOption("--house <id>", "the house", houseId)
    .option("--table <house/game/market>", "one table of it", tableName)
    .requiredOption("--from <time>", "requested since then: 2026-11-21T04:00, or how long ago, as 6h", moment)
    .option("--to <time>", "requested before then", moment, "now")
    .addOption(new Option("--state <state>", "only those in one state").choices(["read", "refused"]))
    .option("--dry-run", "report what would change, and store nothing", false)
    .option("--limit <n>", "at most this many", wholeNumber(1, 100_000), MOST_PAYLOADS)
    .option("--after <place>", "continue after this place, which a run with more payloads printed", place)
    .option("--reason <text>", "why, for the audit log", someText)
    .option("--json", "print one JSON object", false)
    .addHelpText(
      "after",
      examples(
        "payload reread --house bustabit --from 6h --state refused --dry-run",
        'payload reread --house bustabit --from 2026-11-21T04:00 --to 2026-11-21T06:00 --reason "new format"',
      ),
    )
    .action((given: RereadArguments) => {
      const { house, table = `${house}/` } = given;
      if (!table.startsWith(`${house}/`)) throw new UsageError(`--table: ${table} is not a table of ${house}`);
      return withDatabase((session) => reread(session, given), { patient: true });
    });
  return command;
}

function addList(command: Command): void {
  listCommand(command, {
    description: "list payloads, newest first, with the outcome of each",
    filters: {
      ...ofTables(),
      state: inState("unread", "read", "refused"),
      from: filter("--from <time>", "arrived since then: 2026-11-21T04:00, or how long ago, as 6h", moment),
      to: filter("--to <time>", "arrived before then", moment),
    },
    hasLimit: true,
    examples: ["payload list --house bustabit --state refused", "payload list --from 2h --json"],
    read: ({ sql }, values, newest) => listPayloads(sql, values, newest),
    columns: [
      ["table", (payload) => payload.table],
      ["received", (payload) => payload.receivedAt],
      ["kind", (payload) => payload.kind],
      ["status", (payload) => payload.status],
      ["bytes", (payload) => payload.bytes],
      ["state", (payload) => payload.state],
      ["items", (payload) => payload.items],
      ["new", (payload) => payload.newRounds],
      ["quarantined", (payload) => payload.quarantined],
      ["reason", (payload) => payload.refusedReason],
    ],
    toJson: forPrograms,
  });
}

/** A time with its microseconds, which a Date would lose. */
function receivedTime(text: string): string {
  if (isUtcTime(text)) return text;
  throw new InvalidArgumentError("expected a time as `payload list` shows it: 2026-11-21T04:00:12.123456Z.");
}

function place(text: string): RereadPlace {
  const read = readPlace(text);
  if (read !== null) return read;
  throw new InvalidArgumentError("expected a place as the last one printed it.");
}

async function show(
  { sql }: Session,
  { table, receivedAt, json }: { table: string; receivedAt: string; json: boolean },
): Promise<void> {
  const { id: tableId } = await findTableByName(sql, table);
  const payload = await findPayload(sql, { tableId, receivedAt });
  if (payload === null) {
    throw new UsageError(
      `${table} has no payload received at ${receivedAt}; see \`payload list\`, and note that payloads expire after PAYLOAD_RETENTION_HOURS`,
    );
  }
  const { body, ...row } = payload;
  const facts = forPrograms(row);
  const text = gunzipSync(body).toString("utf8");
  if (json) return printJson({ ...facts, body: text });
  const lines = Object.entries(facts).map(([name, value]) => `${name.padEnd(22)} ${value ?? "-"}`);
  await print(`${lines.join("\n")}\n\n${text}`);
}

function forPrograms(listed: ListedPayload) {
  const { tableId: _, isKept: kept, ...row } = listed;
  return { ...snakeKeys(row), kept };
}

async function reread({ sql, settings }: Session, given: RereadArguments): Promise<void> {
  const house = await loadHouseToRead(sql, variablesOf(), given.house);
  if (house === null)
    throw new UsageError(`there is no house ${JSON.stringify(given.house)}; see \`roundhouse house list\``);
  const ids = await chosenTables(sql, given.table === undefined ? { house: given.house } : given);
  const range: RereadRange = {
    house: given.house,
    tableId: given.table === undefined ? null : (ids?.[0] ?? null),
    from: given.from,
    to: given.to === "now" ? moment("now") : given.to,
    state: given.state ?? null,
  };
  // the batches have their own transactions, so the audit entry is written first, whatever happens to this process
  const appendResult = (after: object) =>
    sql.begin((tx) =>
      appendCommandAudit(tx, {
        action: "payload.reread",
        target: `payloads of ${given.table ?? given.house}`,
        before: range,
        after,
        reason: given.reason ?? null,
      }),
    );
  const interrupted = "interrupted; what is stored stays, and reading again adds what is missing";
  const report = await withProgress({ title: "reading again", interrupted }, async ({ signal, progress }) => {
    if (!given.dryRun) await appendResult({ state: "began" });
    const of = Math.min(await countToReread(sql, range, given.limit), given.limit);
    const done = await rereadRange(sql, house, createProver(), range, {
      dryRun: given.dryRun,
      by: operator(),
      most: given.limit,
      after: given.after ?? null,
      signal,
      progress: (count) => progress(count, of),
    });
    if (!given.dryRun) {
      const { next, ...counts } = done;
      await appendResult({ state: next === null ? "done" : "done in part", ...counts });
      await announce(sql, settings.LOG_LEVEL);
    }
    return done;
  });
  await printReport(report, given);
}

async function printReport(report: Reread, { dryRun, json }: RereadArguments): Promise<void> {
  const next = report.next === null ? null : placeText(report.next);
  if (json) return printJson({ ...report, next });
  const would = dryRun ? "would be " : "";
  await print(
    `${report.payloads} payloads ${would}read again: ${report.readable} that were refused can be read, ` +
      `${report.rounds} new rounds (late), ${report.known} known, ${report.conflicts} new conflicts, ` +
      `${report.quarantined} items quarantined, ${report.released} released${dryRun ? "; nothing was stored" : ""}`,
  );
  for (const { reason, payloads } of report.refused) await print(`  ${payloads} refused: ${reason}`);
  if (next !== null) await print(`  there are more; continue with --after ${next}`);
}
