/**
 * From polling a house to the forecast of the next round issued and all that ended scored, for 100 tables at once:
 * Roundhouse as it is run, against straightforward designs that do the same for each round by itself, and beside a design
 * that does nothing but come to the same rows, to see how far any could come.
 *
 * The loop is closed, since a forecast is only issued while the next round cannot be known: the house plays the next
 * round of a table as soon as the bench has seen the forecast of it in the database, and asks for the table's poll by a
 * message in the queue that a schedule would send. So nobody polls in vain, and no pause between two rounds counts. The
 * time ends when all rounds are stored, all forecasts that ended are scored and the next round of each table is forecast.
 * All designs read the same rounds over HTTP, and each is one process with private, durable PostgreSQL and Redis, in slices
 * that take turns.
 *
 * At the end all must have come to the same rounds, probabilities and scores. What else Roundhouse does with a round
 * (it keeps the answer, chains what it stored by hashes, makes the reading, and makes sums anew from the facts) it does
 * here too.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import path from "node:path";
import type { Bench } from "./measured.ts";
import { LISTED } from "./pipeline-house.ts";
import { between, startBenchServers, type BenchServers, type Spent } from "./pipeline-servers.ts";
import { BARE, openBare, openOurs, openPlain, TABLES_PER_HOUSE, type Side } from "./pipeline-sides.ts";

const FULL = { tables: 100, warmUpMs: 10_000, sliceMs: 15_000, slices: 2, steps: [1, 10] };
const SHORT = { tables: 10, warmUpMs: 300, sliceMs: 1_000, slices: 1, steps: [1] };
const LOOK_EVERY_MS = 25;
/** Without any progress for so long something is broken. */
const STUCK_MS = 60_000;
const PROMISED_RATIO = 10;

export default {
  name: "pipeline",
  about: "rounds a second from a poll to forecast and scores, against a job and a statement for each",
  async run({ isShort, directory, say }) {
    const { tables, steps, slices, ...lengths } = isShort ? SHORT : FULL;
    mkdirSync(directory, { recursive: true });
    const folder = mkdtempSync(path.join(directory, "pipeline-"));
    const servers = await startBenchServers(folder, say);
    try {
      const rows: Row[] = [];
      let compared = 0;
      for (const step of steps) {
        const sides = await openSides(servers, folder, { tables, step });
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
      const [baseline, ours] = [bestPlain(rows, steps[0] ?? 1), rows.find((row) => row.side === "ours")];
      const ratio = ours === undefined ? 0 : ours.rounds_per_second / baseline;
      return {
        baseline,
        ours: ours?.rounds_per_second ?? null,
        unit: "rounds/s",
        results: rows,
        notes: [
          `${tables} tables in houses of ${TABLES_PER_HOUSE}; ${compared} lines of rounds, forecasts and scores are the same`,
          "the baseline is the faster of the two straightforward ones",
          `"${BARE}" has as little work as we found: all of a message in one transaction, no answer kept, nothing checked`,
        ],
        failures:
          !isShort && ratio < PROMISED_RATIO ? [`${PROMISED_RATIO} × the baseline, got ${ratio.toFixed(2)}`] : [],
      };
    } finally {
      await servers.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
} satisfies Bench;

/** Each on a database of its own for each number of rounds, since what is forecast depends on it. */
async function openSides(
  servers: BenchServers,
  folder: string,
  { tables, step }: { tables: number; step: number },
): Promise<Side[]> {
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
  requests: number;
  spent: Spent;
}

/** Starts a design, lets it come up to speed, and measures it. */
async function runSlice(
  side: Side,
  servers: BenchServers,
  { warmUpMs, sliceMs, step }: { warmUpMs: number; sliceMs: number; step: number },
): Promise<Slice> {
  const process = await side.start();
  try {
    await comeIn(side, step);
    await loop(side, warmUpMs, step);
    await settle(side);
    await foresee(side);
    const [before, requests, startedAt] = [
      await servers.spent([process.pid]),
      side.house.requests(),
      performance.now(),
    ];
    const rounds = await loop(side, sliceMs, step);
    await settle(side);
    await foresee(side);
    const seconds = (performance.now() - startedAt) / 1_000;
    const spent = between(before, await servers.spent([process.pid]));
    return { side: side.name, step, seconds, rounds, requests: side.house.requests() - requests, spent };
  } finally {
    await process.stop();
  }
}

/** Takes in what the house lists before anything is played; after the rounds of a first answer nothing is forecast. */
async function comeIn(side: Side, step: number): Promise<void> {
  const [before, startedAt] = [side.house.requests(), performance.now()];
  await side.poll(tablesOf(side));
  // the poll that brings the next rounds must follow one without them: else the pause before them may be over
  while (side.house.requests() - before < side.house.tables) {
    requireProgress(side, startedAt);
    await delay(LOOK_EVERY_MS);
  }
  await settle(side);
  if (side.house.newest(0) === LISTED) await play(side, tablesOf(side), step);
}

/** Plays on each table whose next round is forecast, `step` rounds at a time; gives how many were played. */
async function loop(side: Side, forMs: number, step: number): Promise<number> {
  const endsAt = performance.now() + forMs;
  let rounds = 0;
  let movedAt = performance.now();
  for (;;) {
    const forecast = await side.forecast();
    const ready = tablesOf(side).filter((table) => forecast.get(table) === side.house.newest(table));
    if (ready.length > 0) {
      await play(side, ready, step);
      rounds += step * ready.length;
      movedAt = performance.now();
    }
    if (performance.now() >= endsAt && rounds > 0) return rounds;
    requireProgress(side, movedAt);
    await delay(LOOK_EVERY_MS);
  }
}

async function play(side: Side, tables: readonly number[], step: number): Promise<void> {
  for (const table of tables) side.house.play(table, step);
  await side.poll(tables);
}

/** Waits until everything played is stored, and everything that ended is scored. */
async function settle(side: Side): Promise<void> {
  const startedAt = performance.now();
  while (!(await side.isDone())) {
    requireProgress(side, startedAt);
    await delay(LOOK_EVERY_MS);
  }
}

/** Waits until the round after the newest is forecast everywhere: once its pause is over, nothing would go on. */
async function foresee(side: Side): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    const forecast = await side.forecast();
    if (tablesOf(side).every((table) => forecast.get(table) === side.house.newest(table))) return;
    requireProgress(side, startedAt);
    await delay(LOOK_EVERY_MS);
  }
}

function tablesOf({ house }: Side): number[] {
  return Array.from({ length: house.tables }, (_, table) => table);
}

function requireProgress({ name }: Side, movedAt: number): void {
  if (performance.now() - movedAt > STUCK_MS)
    throw new Error(`expected ${name} to come on, got nothing new for ${STUCK_MS / 1_000} s`);
}

/** @throws Error where two designs did not come to the same: then their speed means nothing. */
async function compare(sides: readonly Side[]): Promise<number> {
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

function rowsOf(sides: readonly Side[], step: number, measured: readonly Slice[]): Row[] {
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
      .filter(({ side, rounds_at_once }) => side !== "ours" && side !== BARE && rounds_at_once === step)
      .map((row) => row.rounds_per_second),
  );
}

function rowOf(side: string, step: number, slices: readonly Slice[]) {
  const total = (of: (slice: Slice) => number) => slices.reduce((sum, slice) => sum + of(slice), 0);
  const rounds = total((slice) => slice.rounds);
  const perRound = (of: (slice: Slice) => number, digits: number) => Number((total(of) / rounds).toFixed(digits));
  return {
    side,
    rounds_at_once: step,
    rounds_per_second: Number((rounds / total(({ seconds }) => seconds)).toFixed(1)),
    ratio: 0,
    node_ms: perRound(({ spent }) => spent.node * 1_000, 2),
    postgres_ms: perRound(({ spent }) => spent.postgres * 1_000, 2),
    redis_ms: perRound(({ spent }) => spent.redis * 1_000, 2),
    statements: perRound(({ spent }) => spent.statements, 2),
    wal_bytes: perRound(({ spent }) => spent.walBytes, 0),
    requests: perRound(({ requests }) => requests, 2),
  };
}

function roundsText(count: number): string {
  return count === 1 ? "one round" : `${count} rounds`;
}
