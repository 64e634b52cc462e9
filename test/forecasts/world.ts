import { randomBytes } from "node:crypto";
import { afterAll, onTestFinished } from "vitest";
import { connect, type Sql, type Transaction } from "../../src/db/client.ts";
import { forecastHash, forecastStrings, FIRST_PREV_HASH } from "../../src/forecasts/chain/chain.ts";
import { issueForHouse } from "../../src/forecasts/issue/issue.ts";
import { publishHouse } from "../../src/forecasts/accuracy/publish.ts";
import { catchUpReferences } from "../../src/forecasts/accuracy/reference-hours.ts";
import { lockAccuracy } from "../../src/forecasts/score/score-store.ts";
import { scoreHouse } from "../../src/forecasts/score/score.ts";
import { sumTouched } from "../../src/forecasts/accuracy/sum-hours.ts";
import { applyHouses } from "../../src/houses/apply-store.ts";
import { colorOf, type Color } from "../../src/rounds/colors.ts";
import { historyHash } from "../../src/rounds/history-hash.ts";
import { createDatabase } from "../support/database.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";

/** A pause so long that no machine is too slow for it. */
export const PAUSE_MS = 600_000;

/** A round to add; what is not given is as a poll on time would have it. */
export interface Play {
  hundredths: number;
  /** Default: one more than the newest id. */
  roundId?: string;
  source?: "poll" | "history" | "computed" | "import";
  late?: boolean;
  afterGap?: boolean;
  /** When its answer was asked for and arrived, in seconds before now; default 0. */
  requestedAgo?: number;
  receivedAgo?: number;
  /** When the answer before was asked for, in seconds before now; null: never. Default: as the feed has it. */
  absentAgo?: number | null;
  /** Its fairness hash, which is then verified. */
  proofHash?: string;
}

/** One house, beside the disabled ones of the tests before in the same file. */
export interface World {
  sql: Sql;
  url: string;
  house: string;
  /** Ids of its tables in their order. */
  tableIds: number[];
  /** The first table, and its name. */
  tableId: number;
  tableName: string;
  /** Adds rounds as one answer would, in one transaction. */
  play(rounds: readonly (Play | number)[], tableId?: number): Promise<void>;
  /** Runs one job's work to its end. */
  issue(): ReturnType<typeof issueForHouse>;
  score(): Promise<Awaited<ReturnType<typeof scoreHouse>> & { hours: number }>;
  publish(): Promise<number>;
  /** Adds one round, scores, and issues the next forecast. */
  turn(hundredths: number, tableId?: number): Promise<void>;
  /** Makes all that was played on a table, else the first, that many whole hours older, its forecasts hashed anew. */
  moveBack(hours: number, tableId?: number): Promise<void>;
}

export interface WorldOptions {
  tables?: Record<string, unknown>[];
  house?: Record<string, unknown>;
  connections?: number;
  /** For a test that changes the schema or the whole of a table. */
  ownDatabase?: boolean;
  /** Told what to do when the world is no longer needed; default: after the test. */
  whenDone?: (cleanUp: () => Promise<void>) => void;
}

let shared: ReturnType<typeof createDatabase> | undefined;
afterAll(async () => (await shared)?.drop());

/** Makes a house in the database of the test file, or in one that is gone after the test. */
export async function createWorld(options: WorldOptions = {}): Promise<World> {
  const database = await (options.ownDatabase === true ? createDatabase() : (shared ??= createDatabase()));
  const sql = connect(database.url, { name: "test", max: options.connections ?? 4 });
  const whenDone = options.whenDone ?? onTestFinished;
  whenDone(async () => {
    await sql.end({ timeout: 5 });
    if (options.ownDatabase === true) await database.drop();
  });
  const entry = houseEntry({
    id: `house-${randomBytes(4).toString("hex")}`,
    tables: (options.tables ?? [{}]).map((changes, index) =>
      tableEntry({ market: `m${index}`, house_edge: 0.01, pause_ms: PAUSE_MS, ...changes }),
    ),
    ...options.house,
  });
  await applyHouses(sql, [entry]);
  const tables = await sql<{ id: number; name: string }[]>`
    select id, house_id || '/' || game || '/' || market as name
    from tables
    where house_id = ${entry.settings.id}
    order by position`;
  const [first] = tables;
  if (first === undefined) throw new Error("expected a table, made none");
  const house = entry.settings.id;
  const run = { signal: new AbortController().signal, committed: () => undefined };
  const world: World = {
    sql,
    url: database.url,
    house,
    tableIds: tables.map(({ id }) => id),
    tableId: first.id,
    tableName: first.name,
    play: (rounds, tableId = first.id) => sql.begin((tx) => addRounds(tx, tableId, rounds)).then(() => undefined),
    issue: () => issueForHouse(sql, house, run),
    async score() {
      const scored = await scoreHouse(sql, house, run.signal);
      // who looks at hours waits for no moment in which they are summed
      await catchUpReferences(sql, world.tableIds, run.signal);
      const { hours } = await sql.begin(async (tx) => {
        await lockAccuracy(tx, world.tableIds);
        return sumTouched(tx, world.tableIds);
      });
      return { ...scored, hours: hours.length };
    },
    publish: async () => (await publishHouse(sql, house, run.signal)).rows,
    async turn(hundredths, tableId) {
      await world.play([hundredths], tableId);
      await world.score();
      await world.issue();
    },
    async moveBack(hours, tableId = first.id) {
      const name = tables.find(({ id }) => id === tableId)?.name;
      if (name === undefined) throw new Error(`expected a table of this world, got ${tableId}`);
      await moveBack(sql, tableId, name, hours);
    },
  };
  return world;
}

/** Adds rounds under the table's lock, as the take-in does; all from one answer. */
export async function addRounds(tx: Transaction, tableId: number, rounds: readonly (Play | number)[]): Promise<void> {
  const [table] = await tx<
    { lastSeq: bigint; hash: string; colors: Color[]; newest: string | null; absentAt: string | null; now: string }[]
  >`
    select
      t.last_seq as "lastSeq", t.history_hash as hash, t.colors, t.newest_round_id as newest,
      f.last_answer_at::text as "absentAt",
      clock_timestamp()::text as now
    from tables t
    join feeds f on f.table_id = t.id
    where t.id = ${tableId}
    for no key update of t`;
  if (table === undefined) throw new Error(`expected the table ${tableId}, found none`);
  let { lastSeq: seq, hash, newest } = table;
  const rows = rounds.map((given) => {
    const round = typeof given === "number" ? { hundredths: given } : given;
    const { hundredths, source = "poll", late = false } = round;
    const roundId = round.roundId ?? String(BigInt(newest ?? "1000") + 1n);
    const step = newest === null ? 1n : numberOf(roundId) - numberOf(newest);
    seq += 1n;
    hash = historyHash(hash, { seq, roundId, hundredths });
    if (!late) newest = roundId;
    return {
      table_id: tableId,
      seq: String(seq),
      round_id: roundId,
      hundredths,
      raw_value: `${Math.floor(hundredths / 100)}.${String(hundredths % 100).padStart(2, "0")}`,
      color: colorOf(hundredths, table.colors),
      source,
      requested_ago: round.requestedAgo ?? 0,
      received_ago: round.receivedAgo ?? round.requestedAgo ?? 0,
      absent_ago: round.absentAgo ?? null,
      absent_at: late || source !== "poll" || round.absentAgo !== undefined ? null : table.absentAt,
      after_gap: round.afterGap ?? (!late && step !== 1n),
      late,
      proof_hash: round.proofHash ?? null,
      verified: round.proofHash === undefined ? null : true,
      history_hash: hash,
    };
  });
  await tx`
    insert into rounds (
      table_id, seq, round_id, hundredths, raw_value, color, source, requested_at, received_at, absent_at, after_gap,
      late, proof_hash, verified, history_hash
    )
    select
      table_id, seq, round_id, hundredths, raw_value, color, source,
      case when source in ('poll', 'history') then ${table.now}::timestamptz - requested_ago * interval '1 second' end,
      ${table.now}::timestamptz - received_ago * interval '1 second',
      coalesce(absent_at, ${table.now}::timestamptz - absent_ago * interval '1 second'),
      after_gap, late, proof_hash, verified, history_hash
    from jsonb_to_recordset(${tx.json(rows)}) as x (
      table_id integer, seq bigint, round_id text, hundredths bigint, raw_value text, color text, source text,
      requested_ago float8, received_ago float8, absent_ago float8, absent_at timestamptz, after_gap boolean,
      late boolean, proof_hash text, verified boolean, history_hash text
    )
    order by seq`;
  await tx`
    update tables
    set
      last_seq = ${seq},
      history_hash = ${hash},
      newest_round_id = ${newest},
      rounds = rounds + ${rows.length},
      last_round_at = ${table.now},
      last_polled_round_at = case when ${rows.some(({ source }) => source === "poll")} then ${table.now}::timestamptz else last_polled_round_at end
    where id = ${tableId}`;
  await tx`update feeds set last_answer_at = ${table.now} where table_id = ${tableId}`;
  await tx`
    update published_now
    set
      last_seq = ${seq},
      last_round_at = ${table.now},
      updated_at = clock_timestamp()
    where table_id = ${tableId}`;
}

function numberOf(roundId: string): bigint {
  return /^\d+$/.test(roundId) ? BigInt(roundId) : 0n;
}

/** Stores an answer of the table's feed that nobody has read. */
export async function saveUnread(sql: Sql | Transaction, tableId: number, requestedAgo = 0): Promise<void> {
  await sql`
    insert into payloads (table_id, kind, requested_at, received_at, path, status, bytes, sha256, body)
    select ${tableId}, 'poll', at - ${requestedAgo} * interval '1 second', at, '/', 200, 0, '', ''
    from (select clock_timestamp() as at) clock`;
}

/** Marks what is unread of a table as read. */
export async function readAll(sql: Sql | Transaction, tableId: number): Promise<void> {
  await sql`
    update payloads
    set
      state = 'read',
      read_at = clock_timestamp()
    where table_id = ${tableId}
      and state = 'unread'`;
}

/** Another result for a round we have, as the take-in lists it. */
export async function saveConflict(sql: Sql, tableId: number, roundId: string): Promise<void> {
  await sql`
    insert into conflicts (table_id, round_id, kept_hundredths, other_hundredths, other_raw)
    select ${tableId}, ${roundId}, hundredths, hundredths + 1, ''
    from rounds
    where table_id = ${tableId}
      and round_id = ${roundId}`;
}

async function moveBack(sql: Sql, tableId: number, table: string, hours: number): Promise<void> {
  await sql.begin(async (tx) => {
    const by = tx`${hours} * interval '1 hour'`;
    await tx`
      update rounds
      set
        requested_at = requested_at - ${by},
        received_at = received_at - ${by},
        absent_at = absent_at - ${by}
      where table_id = ${tableId}`;
    await tx`
      update forecasts
      set
        issued_at = issued_at - ${by},
        issue_hour = issue_hour - ${by}
      where table_id = ${tableId}`;
    await tx`
      update scores
      set
        issued_at = issued_at - ${by},
        issue_hour = issue_hour - ${by},
        target_requested_at = target_requested_at - ${by}
      where table_id = ${tableId}`;
    await tx`
      update conflicts
      set
        first_seen_at = first_seen_at - ${by},
        last_seen_at = last_seen_at - ${by}
      where table_id = ${tableId}`;
    await tx`update open_forecasts set issue_hour = issue_hour - ${by} where table_id = ${tableId}`;
    await tx`update accuracy_hours set hour = hour - ${by}, updated_at = updated_at - ${by} where table_id = ${tableId}`;
    await tx`update accuracy_series set first_hour = first_hour - ${by} where table_id = ${tableId}`;
    // made anew with the next round or score: they stand under the hours in which these came in
    await tx`delete from hour_marks where table_id = ${tableId}`;
    await tx`delete from reading_memories where table_id = ${tableId}`;
    await tx`delete from house_audits where table_id = ${tableId}`;
    await rehash(tx, tableId, table);
  });
}

/** Writes the hashes anew that follow from changed forecasts. */
async function rehash(tx: Transaction, tableId: number, table: string): Promise<void> {
  const forecasts = await tx<
    {
      seq: bigint;
      forecastId: string;
      model: string;
      feature: string;
      issuedAt: string;
      cutoffRoundId: string;
      historyHash: string;
      targetRoundId: string | null;
      horizon: number;
      pPpm: number[];
      basePpm: number[];
    }[]
  >`
    select
      seq, forecast_id as "forecastId", model, feature, utc_text(issued_at) as "issuedAt",
      cutoff_round_id as "cutoffRoundId", history_hash as "historyHash", target_round_id as "targetRoundId", horizon,
      p_ppm as "pPpm", base_ppm as "basePpm"
    from forecasts
    where table_id = ${tableId}
    order by seq`;
  let prevHash = FIRST_PREV_HASH;
  for (const forecast of forecasts) {
    const hash = forecastHash(prevHash, forecastStrings({ ...forecast, table }));
    await tx`
      update forecasts
      set
        prev_hash = ${prevHash},
        hash = ${hash}
      where table_id = ${tableId}
        and seq = ${forecast.seq}`;
    prevHash = hash;
  }
  await tx`update tables set forecast_hash = ${prevHash} where id = ${tableId}`;
}
