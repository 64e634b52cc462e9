/**
 * From polling a house to the forecast of the next round issued and everything that ended scored, for 100 tables at once:
 * Roundhouse as it is run, next to straightforward programs that do the same round by round, and next to a program that
 * makes the same rows and nothing else, to see how far any could come.
 *
 * The loop is closed, since a forecast is only issued while the next round cannot be known: the house plays the next
 * round of a table as soon as the bench sees its forecast, and asks for the table's poll by a message in the queue that
 * a schedule would send. So nobody polls in vain, and no pause between two rounds counts. The time ends when all rounds
 * are stored, all forecasts that ended are scored and the next round of each table is forecast. All read the same rounds
 * over HTTP, and each is one process with private, durable PostgreSQL and Redis, in slices that take turns.
 *
 * Then the same at a fixed pace over 1,000 houses, where nothing is saturated, and with a year of history.
 *
 * At the end all must have come to the same rounds, probabilities and scores. What else Roundhouse does with a round
 * (payloads, hash chains, readings, references, guards) it does here too.
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
/** Rounds a second of all tables together at the fixed pace: each table of 1,000 plays one every 15 s. */
const PACE = 67;
const CHECK_EVERY_MS = 2;
/** A round that is stored for so long and not forecast after will not be: its forecast was too late to be committed. */
const MISSED_AFTER_MS = 2_000;
/** Without any progress for so long something is broken. */
const STUCK_MS = 60_000;
/** By rounds a response: rounds a second next to the straightforward program, milliseconds of processor time a round. */
const TARGETS = new Map([
  [1, { ratio: 4, ms: 0.45 }],
  [10, { ratio: 8, ms: 0.12 }],
]);
const MAX_WAL_BYTES = 3_000;
/** The log states what moved at most so often; jobs/publish-log.ts has its schedule. */
const LOG_EVERY_MS = 10_000;
/** Of the processor time of the pipeline at the fixed pace. */
const MAX_LOG_SHARE = 0.05;

export default {
  name: "pipeline",
  about: "rounds a second from a poll to forecast and scores, against a job and a statement for each",
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
          compared += await compare(sides);
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
          `"${BARE}" has as little work as we found: everything of a message in one transaction, nothing kept or checked`,
          `"${PACED}": ${PACE} rounds a second over ${paced.tables} tables in houses of their own; the log takes ${(shareOfLog(rows) * 100).toFixed(1)} % of ours`,
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
const LOG = "of it the log";
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
  const log = share <= MAX_LOG_SHARE ? [] : [`${MAX_LOG_SHARE * 100} % for the log, got ${(share * 100).toFixed(1)} %`];
  const ours = rows
    .filter(({ side }) => side === "ours")
    .flatMap(({ rounds_at_once: step, ratio, total_ms: ms, wal_bytes: wal }) => {
      const promised = TARGETS.get(step);
      if (promised === undefined) return [];
      const at = `${roundsText(step)} at a time`;
      return [
        ...(ratio < promised.ratio ? [`${promised.ratio} × the baseline ${at}, got ${ratio}`] : []),
        ...(ms > promised.ms ? [`${promised.ms} ms of processor time a round ${at}, got ${ms}`] : []),
        ...(wal > MAX_WAL_BYTES ? [`${MAX_WAL_BYTES} bytes of WAL a round ${at}, got ${wal}`] : []),
      ];
    });
  return [...log, ...ours];
}

/** The same work at a pace that saturates nothing: what a round costs when work does not come in batches. */
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
      say(`${side.name}, ${PACE} rounds a second over ${tables} tables`);
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
  const intervals = Math.ceil((5 * ms) / LOG_EVERY_MS); // more than were played: each takes milliseconds
  const moved = Math.min(tables, rounds);
  const { spent, seconds } = await measureLog(servers, databaseUrl, { folder, intervals, moved });
  const none = { step: 1, missed: 0, requests: 0, storedBytes: 0 };
  return { ...none, side: LOG, seconds, rounds: rounds * intervals, spent };
}

/** Of the processor time per round that ours takes, `log` included, at the fixed pace. */
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

/** Each on a database of its own for each number of rounds, since what is forecast depends on it. */
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
  /** Of tables that were played on without a forecast. */
  missed: number;
  requests: number;
  spent: Spent;
  storedBytes: number;
}

/** Starts a design, lets it come up to speed, and measures it. */
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
    return { ...(await measured.end()), step, rounds: played.rounds, missed };
  } finally {
    await process.stop();
  }
}

/** From now until `end`; the slice lacks its rounds. */
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

/** Takes in what the house lists before anything is played; after the rounds of a first answer nothing is forecast. */
async function pollFirstRounds(side: Design, step: number): Promise<void> {
  const [before, startedAt] = [side.house.requests(), performance.now()];
  await side.poll(tablesOf(side));
  // the poll that brings the next rounds must follow one without them: else the pause before them may be over
  while (side.house.requests() - before < side.house.tables) {
    requireProgress(side, startedAt);
    await delay(CHECK_EVERY_MS);
  }
  await settle(side);
  if (side.house.newest(0) === LISTED) await play(side, tablesOf(side), step);
}

/**
 * Plays on each table whose next round is forecast, `step` rounds at a time; gives how many were played, and how often a
 * table was played on without a forecast.
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
      missed += ready.length;
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

/** Waits until everything played is stored, and everything that ended is scored. */
async function settle(side: Design): Promise<void> {
  const startedAt = performance.now();
  while (!(await side.isComplete())) {
    requireProgress(side, startedAt);
    await delay(CHECK_EVERY_MS);
  }
}

/** Waits until the round after the newest is forecast everywhere; gives how often one was played on without. */
async function waitForForecasts(side: Design, step: number): Promise<number> {
  let missed = 0;
  for (let startedAt = performance.now(); ;) {
    const forecast = await side.forecast();
    const left = tablesOf(side).filter((table) => forecast.get(table) !== side.house.newest(table));
    if (left.length === 0) return missed;
    if (performance.now() - startedAt > MISSED_AFTER_MS && (await side.isComplete())) {
      await play(side, left, step);
      missed += left.length;
      startedAt = performance.now();
    }
    requireProgress(side, startedAt);
    await delay(CHECK_EVERY_MS);
  }
}

function tablesOf({ house }: Design): number[] {
  return Array.from({ length: house.tables }, (_, table) => table);
}

function requireProgress({ name }: Design, movedAt: number): void {
  if (performance.now() - movedAt > STUCK_MS)
    throw new Error(`expected ${name} to come on, got nothing new for ${STUCK_MS / 1_000} s`);
}

/** @throws Error where two designs did not come to the same: then their speed means nothing. */
async function compare(sides: readonly Design[]): Promise<number> {
  const upTo = Math.min(
    ...sides.flatMap(({ house }) => Array.from({ length: house.tables }, (_, n) => house.newest(n))),
  );
  const [first = [], ...others] = await Promise.all(sides.map((side) => side.facts(upTo)));
  if (first.length < 2 * LISTED) throw new Error(`expected rounds and forecasts to compare, got ${first.length}`);
  for (const other of others) {
    const at = first.findIndex((line, place) => line !== other[place]);
    if (at !== -1 || other.length !== first.length)
      throw new Error(`expected the same of all designs, got ${first[at]} and ${other[at]}`);
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
