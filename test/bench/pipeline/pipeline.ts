/**
 * The pipeline from the poll of a house to the stored forecast of the next round and all scores, for 100 tables in
 * parallel: Roundhouse as it runs in production, straightforward programs that process round by round, and a program that
 * only writes the same rows, as an upper bound.
 *
 * The loop is closed, because a forecast is only issued before the next round can be known: the bench makes the house play
 * the next round of a table when it sees the forecast, and requests the poll by the queue message that a schedule would
 * send. So no poll finds nothing new, and no pause between rounds is measured. The measurement ends when all rounds are
 * stored, all settled forecasts are scored and the next round of each table is forecast. All designs read the same rounds
 * over HTTP; each is one process with private, durable PostgreSQL and Redis, in alternating slices.
 *
 * Then the same at a fixed pace over 1,000 houses, where nothing is saturated.
 *
 * At the end all designs must have equal rounds, probabilities and scores. Roundhouse also stores payloads, hash chains,
 * readings and references and checks its guards, as in production.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import path from "node:path";
import type { Bench } from "../bench-result.ts";
import { measureLog } from "./log.ts";
import { LISTED } from "./house.ts";
import { between, startBenchServers, type BenchServers, type Spent } from "./servers.ts";
import { BARE, openBare, openOurs, openPlain, PLAIN, TABLES_PER_HOUSE, type Design } from "./designs.ts";

const FULL = {
  tables: 100,
  warmUpMs: 10_000,
  sliceMs: 15_000,
  slices: 2,
  steps: [1, 10],
  paced: { tables: 1_000, ms: 60_000 },
};
const SHORT = { tables: 10, warmUpMs: 300, sliceMs: 1_000, slices: 1, steps: [1], paced: { tables: 20, ms: 1_000 } };
/** Rounds per second of all tables together at the fixed pace: each of 1,000 tables plays one every 15 s. */
const PACE = 67;
const CHECK_EVERY_MS = 2;
/** After this time no forecast follows a stored round any more: it was too late to be committed. */
const MISSED_AFTER_MS = 2_000;
/** The bench fails if a design issues no forecast in time after more than this share of the polls that brought rounds. */
const MAX_MISSED_SHARE = 0.1;
/** The bench fails if a table has no forecast after being continued this often. */
const MAX_CONTINUED = 5;
/** The bench fails without progress for this long. */
const STUCK_MS = 60_000;
/** By rounds per response: the ratio to the straightforward program, and milliseconds of CPU time per round. */
const TARGETS = new Map([
  [1, { ratio: 4, ms: 0.45 }],
  [10, { ratio: 8, ms: 0.12 }],
]);
const MAX_WAL_BYTES = 3_000;
/** The interval of the log; jobs/publish-log.ts has its schedule. */
const LOG_EVERY_MS = 10_000;
/** Of the CPU time of the pipeline at the fixed pace. */
const MAX_LOG_SHARE = 0.05;

export default {
  name: "pipeline",
  about: "rounds per second from a poll to forecast and scores, against one job and statement per row",
  async run({ isShort, directory, say }) {
    const { tables, steps, slices, paced, ...lengths } = isShort ? SHORT : FULL;
    mkdirSync(directory, { recursive: true });
    const folder = mkdtempSync(path.join(directory, "pipeline-"));
    const servers = await startBenchServers(folder, say);
    try {
      const rows: Row[] = [];
      let compared = 0;
      for (const step of steps) {
        const sides = await openDesigns(servers, folder, { tables, step });
        try {
          const measured: Slice[] = [];
          for (let slice = 0; slice < slices; slice++) {
            for (const side of sides) {
              say(`${side.name}, ${roundsText(step)} at a time`);
              measured.push(await runSlice(side, servers, { ...lengths, step }));
            }
          }
          compared += await compare(sides, step);
          rows.push(...rowsOf(sides, step, measured));
        } finally {
          for (const side of sides) await side.close();
        }
      }
      rows.push(...(await runPaced(servers, folder, paced, say)));
      const [baseline, ours] = [bestPlain(rows, steps[0] ?? 1), rows.find((row) => row.side === "ours")];
      return {
        baseline,
        ours: ours?.rounds_per_second ?? null,
        unit: "rounds/s",
        results: rows,
        shown: SHOWN,
        notes: [
          `${tables} tables in houses of ${TABLES_PER_HOUSE}; ${compared} lines of rounds, forecasts and scores are the same`,
          "the baseline is the faster of the two straightforward programs",
          `"${BARE}" does as little work as we found: one transaction per message, nothing else stored or checked`,
          `"${PACED}": ${PACE} rounds per second over ${paced.tables} tables, one per house; the log takes ${(shareOfLog(rows) * 100).toFixed(1)} % of ours`,
        ],
        failures: isShort ? [] : failuresOf(rows),
      };
    } finally {
      await servers.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
} satisfies Bench;

const PACED = "at a fixed pace";
const LOG = "of that, the log";
const SHOWN = [
  "side",
  "rounds_at_once",
  "rounds_per_second",
  "ratio",
  "total_ms",
  "node_ms",
  "postgres_ms",
  "wal_bytes",
];

function failuresOf(rows: readonly Row[]): string[] {
  const share = shareOfLog(rows);
  const log =
    share <= MAX_LOG_SHARE ? [] : [`at most ${MAX_LOG_SHARE * 100} % for the log, got ${(share * 100).toFixed(1)} %`];
  const ours = rows
    .filter(({ side }) => side === "ours")
    .flatMap(({ rounds_at_once: step, ratio, total_ms: ms, wal_bytes: wal }) => {
      const target = TARGETS.get(step);
      if (target === undefined) return [];
      const at = `${roundsText(step)} at a time`;
      return [
        ...(ratio < target.ratio ? [`${target.ratio} × the baseline ${at}, got ${ratio}`] : []),
        ...(ms > target.ms ? [`at most ${target.ms} ms of CPU time per round ${at}, got ${ms}`] : []),
        ...(wal > MAX_WAL_BYTES ? [`at most ${MAX_WAL_BYTES} bytes of WAL per round ${at}, got ${wal}`] : []),
      ];
    });
  return [...log, ...ours];
}

/** The same at a pace that saturates nothing: the cost of a round when rounds do not arrive in batches. */
async function runPaced(
  servers: BenchServers,
  folder: string,
  { tables, ms }: { tables: number; ms: number },
  say: (line: string) => void,
): Promise<Row[]> {
  const own = path.join(folder, "paced");
  const ours = await servers.makeDatabase("paced_ours");
  const sides = [
    await openPlain(servers, await servers.makeDatabase("paced_rounds"), tables, "round"),
    await openOurs(servers, ours, tables, own, 1),
  ];
  const slices: Slice[] = [];
  try {
    for (const side of sides) {
      say(`${side.name}, ${PACE} rounds per second over ${tables} tables`);
      slices.push(await runPacedSlice(side, servers, ms));
    }
    slices.push(await runLog(servers, ours, { tables, ms, folder: own }));
  } finally {
    for (const side of sides) await side.close();
  }
  return slices.map((slice) => ({ ...rowOf(`${slice.side}, ${PACED}`, 1, [slice]), ratio: 0 }));
}

/** The log alone, on the tables of the paced run, per round of that pace. */
async function runLog(
  servers: BenchServers,
  databaseUrl: string,
  { tables, ms, folder }: { tables: number; ms: number; folder: string },
): Promise<Slice> {
  const rounds = (PACE * LOG_EVERY_MS) / 1_000;
  const intervals = Math.ceil((5 * ms) / LOG_EVERY_MS); // more than in the paced run, since each takes only milliseconds
  const moved = Math.min(tables, rounds);
  const { spent, seconds } = await measureLog(servers, databaseUrl, { folder, intervals, moved });
  const none = { step: 1, missed: 0, requests: 0, storedBytes: 0 };
  return { ...none, side: LOG, seconds, rounds: rounds * intervals, spent };
}

/** The share of the log in the CPU time per round of Roundhouse at the fixed pace. */
function shareOfLog(rows: readonly Row[]): number {
  const ms = (side: string) => rows.find((row) => row.side === `${side}, ${PACED}`)?.total_ms ?? Number.NaN;
  return ms(LOG) / ms("ours");
}

async function runPacedSlice(side: Design, servers: BenchServers, ms: number): Promise<Slice> {
  const process = await side.start();
  try {
    await pollFirstRounds(side, 1);
    await settle(side);
    const before = await startMeasuring(side, servers, process.pid);
    let rounds = 0;
    while (performance.now() - before.startedAt < ms) {
      const due = Math.floor(((performance.now() - before.startedAt) / 1_000) * PACE);
      const tables = Array.from({ length: due - rounds }, (_, n) => (rounds + n) % side.house.tables);
      rounds = due;
      if (tables.length > 0) await play(side, tables, 1);
      await delay(CHECK_EVERY_MS);
    }
    await settle(side);
    return { ...(await before.end()), step: 1, rounds, missed: 0 };
  } finally {
    await process.stop();
  }
}

/** Each design has its own database for each `step`, since forecasts depend on it. */
async function openDesigns(
  servers: BenchServers,
  folder: string,
  { tables, step }: { tables: number; step: number },
): Promise<Design[]> {
  const database = (name: string) => servers.makeDatabase(`${name}_${step}`);
  return [
    await openPlain(servers, await database("statements"), tables, "statement"),
    await openPlain(servers, await database("rounds"), tables, "round"),
    await openBare(servers, await database("bare"), tables),
    await openOurs(servers, await database("ours"), tables, folder),
  ];
}

interface Slice {
  side: string;
  step: number;
  seconds: number;
  rounds: number;
  /** How often a table continued without a forecast. */
  missed: number;
  requests: number;
  spent: Spent;
  storedBytes: number;
}

/** Starts a design, warms it up and measures it. */
async function runSlice(
  side: Design,
  servers: BenchServers,
  { warmUpMs, sliceMs, step }: { warmUpMs: number; sliceMs: number; step: number },
): Promise<Slice> {
  const process = await side.start();
  try {
    await pollFirstRounds(side, step);
    await loop(side, warmUpMs, step);
    await settle(side);
    await waitForForecasts(side, step);
    const measured = await startMeasuring(side, servers, process.pid);
    const played = await loop(side, sliceMs, step);
    await settle(side);
    const missed = played.missed + (await waitForForecasts(side, step));
    const due = played.rounds / step;
    if (missed > MAX_MISSED_SHARE * due)
      throw new Error(`expected ${side.name} to forecast each of ${due} rounds in time, missed ${missed}`);
    return { ...(await measured.end()), step, rounds: played.rounds, missed };
  } finally {
    await process.stop();
  }
}

/** Measures from now until `end`, which returns a slice without its rounds. */
async function startMeasuring(side: Design, servers: BenchServers, pid: number) {
  const [before, bytes, requests] = [await servers.spent([pid]), await side.storedBytes(), side.house.requests()];
  const startedAt = performance.now();
  return {
    startedAt,
    async end() {
      const seconds = (performance.now() - startedAt) / 1_000;
      const spent = between(before, await servers.spent([pid]));
      const storedBytes = (await side.storedBytes()) - bytes;
      return { side: side.name, seconds, requests: side.house.requests() - requests, spent, storedBytes };
    },
  };
}

/** Polls the rounds that the house lists at first; no forecast follows the rounds of a first response. */
async function pollFirstRounds(side: Design, step: number): Promise<void> {
  const [before, startedAt] = [side.house.requests(), performance.now()];
  await side.poll(tablesOf(side));
  // a poll without new rounds must precede the one with the next rounds, or their pause may be considered over
  while (side.house.requests() - before < side.house.tables) {
    requireProgress(side, startedAt);
    await delay(CHECK_EVERY_MS);
  }
  await settle(side);
  if (side.house.newest(0) === LISTED) await play(side, tablesOf(side), step);
}

/**
 * Plays `step` rounds of each table whose next round is forecast, until the time is over. Returns how many rounds were
 * played, and how often a table continued without a forecast.
 */
async function loop(side: Design, forMs: number, step: number): Promise<{ rounds: number; missed: number }> {
  const endsAt = performance.now() + forMs;
  let rounds = 0;
  let missed = 0;
  let movedAt = performance.now();
  for (;;) {
    const forecast = await side.forecast();
    let ready = tablesOf(side).filter((table) => forecast.get(table) === side.house.newest(table));
    if (ready.length === 0 && performance.now() - movedAt > MISSED_AFTER_MS && (await side.isComplete())) {
      ready = tablesOf(side);
      missed += noteMissed(side, ready);
    }
    if (ready.length > 0) {
      await play(side, ready, step);
      rounds += step * ready.length;
      movedAt = performance.now();
    }
    if (performance.now() >= endsAt && rounds > 0) return { rounds, missed };
    requireProgress(side, movedAt);
    await delay(CHECK_EVERY_MS);
  }
}

async function play(side: Design, tables: readonly number[], step: number): Promise<void> {
  for (const table of tables) side.house.play(table, step);
  await side.poll(tables);
}

/** Waits until every played round is stored and every settled forecast scored. */
async function settle(side: Design): Promise<void> {
  const startedAt = performance.now();
  while (!(await side.isComplete())) {
    requireProgress(side, startedAt);
    await delay(CHECK_EVERY_MS);
  }
}

/** Waits until each table has a forecast of its next round. Returns how often a table continued without one. */
async function waitForForecasts(side: Design, step: number): Promise<number> {
  let missed = 0;
  let continued = 0;
  for (let startedAt = performance.now(); ;) {
    const forecast = await side.forecast();
    const left = tablesOf(side).filter((table) => forecast.get(table) !== side.house.newest(table));
    if (left.length === 0) return missed;
    if (performance.now() - startedAt > MISSED_AFTER_MS && (await side.isComplete())) {
      if (continued++ === MAX_CONTINUED)
        throw new Error(`expected forecasts of ${side.name}, got none of ${left.length} tables`);
      missed += noteMissed(side, left);
      await play(side, left, step);
      startedAt = performance.now();
    }
    requireProgress(side, startedAt);
    await delay(CHECK_EVERY_MS);
  }
}

/** Notes that tables have no forecast after their newest round. Returns how many tables. */
function noteMissed({ house, missed }: Design, tables: readonly number[]): number {
  for (const table of tables) if (!missed.has(table)) missed.set(table, house.newest(table));
  return tables.length;
}

function tablesOf({ house }: Design): number[] {
  return Array.from({ length: house.tables }, (_, table) => table);
}

function requireProgress({ name }: Design, movedAt: number): void {
  if (performance.now() - movedAt > STUCK_MS)
    throw new Error(`expected progress of ${name}, got none for ${STUCK_MS / 1_000} s`);
}

/**
 * Compares each table up to its newest round, or to the one before the first that a design issued no forecast after.
 * @throws Error if two designs have different results, since their speed is then not comparable, or if less than half of
 * the tables have forecasts to compare
 */
async function compare(sides: readonly Design[], step: number): Promise<number> {
  const upTo = tablesOf(sides[0]!).map((table) =>
    Math.min(...sides.map(({ house, missed }) => (missed.get(table) ?? house.newest(table) + 1) - 1)),
  );
  const [first = [], ...others] = await Promise.all(sides.map((side) => side.results(upTo)));
  // no forecast follows the rounds that a house lists at first
  const withForecasts = upTo.filter((end) => end >= LISTED + step).length;
  if (2 * withForecasts < upTo.length)
    throw new Error(`expected forecasts of most of ${upTo.length} tables to compare, got those of ${withForecasts}`);
  if (first.length < 2 * LISTED) throw new Error(`expected rounds and forecasts to compare, got ${first.length}`);
  for (const other of others) {
    const at = first.findIndex((line, place) => line !== other[place]);
    if (at !== -1 || other.length !== first.length)
      throw new Error(`expected equal results of all designs, got ${first[at]} and ${other[at]}`);
  }
  return first.length;
}

type Row = ReturnType<typeof rowOf>;

function rowsOf(sides: readonly Design[], step: number, measured: readonly Slice[]): Row[] {
  const rows = sides.map(({ name }) => {
    const own = measured.filter((slice) => slice.side === name && slice.step === step);
    return rowOf(name, step, own);
  });
  const baseline = bestPlain(rows, step);
  return rows.map((row) => ({ ...row, ratio: Math.round((row.rounds_per_second / baseline) * 100) / 100 }));
}

function bestPlain(rows: readonly Row[], step: number): number {
  return Math.max(
    ...rows
      .filter(({ side, rounds_at_once }) => side.startsWith(PLAIN) && !side.endsWith(PACED) && rounds_at_once === step)
      .map((row) => row.rounds_per_second),
  );
}

function rowOf(side: string, step: number, slices: readonly Slice[]) {
  const total = (of: (slice: Slice) => number) => slices.reduce((sum, slice) => sum + of(slice), 0);
  const rounds = total((slice) => slice.rounds);
  const perRound = (of: (slice: Slice) => number, digits: number) => Number((total(of) / rounds).toFixed(digits));
  const processorTime = ({ spent }: Slice) => (spent.node + spent.postgres + spent.redis) * 1_000;
  return {
    side,
    rounds_at_once: step,
    rounds_per_second: Number((rounds / total(({ seconds }) => seconds)).toFixed(1)),
    ratio: 0,
    total_ms: perRound(processorTime, 3),
    node_ms: perRound(({ spent }) => spent.node * 1_000, 3),
    postgres_ms: perRound(({ spent }) => spent.postgres * 1_000, 3),
    redis_ms: perRound(({ spent }) => spent.redis * 1_000, 3),
    statements: perRound(({ spent }) => spent.statements, 2),
    wal_bytes: perRound(({ spent }) => spent.walBytes, 0),
    stored_bytes: perRound(({ storedBytes }) => storedBytes, 0),
    requests: perRound(({ requests }) => requests, 2),
    missed: total(({ missed }) => missed),
  };
}

function roundsText(count: number): string {
  return count === 1 ? "one round" : `${count} rounds`;
}
