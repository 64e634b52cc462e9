/**
 * From ten tables to ten thousand, and from ten thousand stored rounds to twenty million: the cost of a round, the lag until
 * it is readable at the API, and the punctuality of polls. Real processes on private, durable servers poll a load house over
 * HTTP; each process is measured separately.
 *
 * The cost of a round is the CPU time of worker, API, PostgreSQL and Redis together. Its baseline is the cost with the fewest
 * tables, so growth is a ratio above 1. For comparison: a bare loop that fetches the same feeds and discards them.
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { UsageError } from "../../../src/errors.ts";
import { startServers } from "../../../src/embedded/servers.ts";
import type { HouseBehavior } from "../load-house.ts";
import type { Bench } from "../bench-result.ts";
import { scalePlot } from "./plot.ts";
import { runStage, MEASURED_PROCESSES, type StageResult, type Stage } from "./stage.ts";

const TARGETS = {
  beyondPollMs: 300,
  lagMs: 5_000,
  latenessMs: 1_000,
  coverage: 0.995,
  growth: 1.5,
  workers: 1.15,
  year: 1.2,
  takeOverMs: 2_000,
  workerMb: 150,
  tableKb: 40,
  mixed: 1.2,
  mixedMb: 600,
};
const USUAL = {
  pollMs: 2_000,
  roundMs: 15_000,
  warmUpSeconds: 20,
  seconds: 60,
  tablesPerHouse: 10,
  history: 0,
  workers: 1,
};
/** Slow but healthy houses. */
const SLOW: HouseBehavior = { latencyMs: [1_000, 1_001], silent: 0, slow: 0 };
/** Unstable houses: one response in fifty is never sent, one in fifty arrives in pieces. */
const UNEVEN: HouseBehavior = { latencyMs: [5, 3_000], silent: 0.02, slow: 0.02 };
const QUICK = { warmUpSeconds: 5, seconds: 5 };
const TABLES = [10, 100, 1_000, 10_000];
const HISTORIES = [10_000, 1_000_000, 20_000_000];
/** Tables over which a history is spread. */
const HISTORY_TABLES = 100;
/** Worker processes, and the houses that they share. */
const WORKERS = [1, 2, 4];
const WORKER_HOUSES = 100;
/** Rounds in a year of ten tables with one round every two and a half minutes. */
const YEAR_ROUNDS = 2_102_400;

export default {
  name: "scale",
  about: "CPU per round, lag and lateness from 10 to 10,000 tables and over 10 thousand to 20 million rounds",
  flags: {
    "--tables <list>": "sizes to measure instead of 10,100,1000,10000; ten tables to a house",
    "--history <list>": "numbers of stored rounds to measure instead of 10000,1000000,20000000; 0 skips that",
    "--seconds <n>": "seconds of each measurement, default 60",
    "--workers <n>": "worker processes, default 1",
    "--only <text>": "only stages whose name contains this text, such as punctual or lag",
    "--warm-up <n>": "seconds of warm-up before each measurement, default 20",
  },
  async run({ isShort, directory, say, given }) {
    const short = [...growthOf([10]), ...workersOf([2], 2), ...yearOf(10_000).slice(1)].map((stage) => ({
      ...stage,
      ...QUICK,
    }));
    const stages = isShort ? short : stagesOf(given);
    const dataDir = mkdtempSync(join(resolve(directory), "scale-"));
    chmodSync(dataDir, 0o711); // PostgreSQL may run as another user
    const servers = await startServers({ dataDir, say, superuser: true });
    const found: StageResult[] = [];
    try {
      for (const stage of stages) found.push(await runStage(stage, servers, dataDir, say));
    } finally {
      await servers.stop();
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
    }
    const growth = found.filter(({ stage }) => stage.name.startsWith("tables"));
    const file = join(directory, "scale.svg");
    if (!isShort) writeFileSync(file, await scalePlot(growth.map(plotPoint)));
    const [first, last] = [growth[0], growth.at(-1)];
    return {
      baseline: first === undefined ? null : cpuPerRound(first),
      ours: last === undefined ? null : cpuPerRound(last),
      unit: "ms of CPU per round",
      results: found.map(rowOf),
      shown: SHOWN,
      notes: [
        "cpu_*: cores; lag: from published by the house to readable at the API; late: from the scheduled time of a poll to its first request",
        "ratio: the cost of a round with the most tables / with the fewest; less than 1 is cheaper",
        ...found.map(capacityNote),
        ...(isShort ? [] : [`plot: ${file}`]),
      ],
      failures: isShort ? [] : found.flatMap(failuresAmong(found)),
    };
  },
} satisfies Bench;

function stagesOf(given: Record<string, string>): Stage[] {
  const list = (name: string, usual: readonly number[]) =>
    given[name] === undefined ? usual : given[name].split(",").map((text) => wholeNumber(name, text));
  const number = (flag: string, usual: number) => {
    const text = given[flag.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())];
    return text === undefined ? usual : wholeNumber(flag, text);
  };
  const own = {
    seconds: number("seconds", USUAL.seconds),
    warmUpSeconds: number("warm-up", USUAL.warmUpSeconds),
    workers: number("workers", USUAL.workers),
  };
  const isWhole = given["tables"] === undefined && given["history"] === undefined;
  const promised: Stage[] = [
    { ...USUAL, name: "lag: 100 tables every second", houses: 10, pollMs: 1_000 },
    { ...USUAL, name: "punctual: 1000 houses", houses: 1_000, tablesPerHouse: 1 },
    { ...USUAL, name: "slow: 200 houses of 1 s", houses: 200, tablesPerHouse: 1, behavior: SLOW },
    { ...USUAL, name: "ordinary: 100 houses", houses: 100, tablesPerHouse: 1 },
    {
      ...USUAL,
      name: "mixed: 100 houses with four faulty ones",
      houses: 100,
      tablesPerHouse: 1,
      hasFaultyHouses: true,
    },
    { ...USUAL, name: "uneven: 200 houses of 5 ms to 3 s", houses: 200, tablesPerHouse: 1, behavior: UNEVEN },
  ];
  return [
    ...(isWhole ? [...workersOf(WORKERS, WORKER_HOUSES), ...yearOf(YEAR_ROUNDS)] : []),
    ...growthOf(list("tables", given["history"] === undefined ? TABLES : [])),
    ...(isWhole ? promised : []),
    ...historiesOf(list("history", given["tables"] === undefined ? HISTORIES : [])),
  ]
    .filter(({ name }) => name.includes(given["only"] ?? ""))
    .map((stage) => ({ ...stage, ...own, ...(given["workers"] === undefined && { workers: stage.workers }) }));
}

/** The same load with different numbers of workers. */
function workersOf(counts: readonly number[], houses: number): Stage[] {
  return counts.map((workers) => ({ ...USUAL, name: `workers: ${workers}`, houses, workers }));
}

/** Ten tables with a round per second, without history and with a year of it. */
function yearOf(history: number): Stage[] {
  const stage = { ...USUAL, houses: 1, pollMs: 500, roundMs: 1_000 };
  return [
    { ...stage, name: "year: before it" },
    { ...stage, name: "year: after it", history, pastMs: 365 * 86_400_000 },
  ];
}

function growthOf(tables: readonly number[]): Stage[] {
  return tables.map((count) => {
    const houses = Math.max(1, Math.round(count / USUAL.tablesPerHouse));
    return { ...USUAL, name: `tables: ${count}`, houses, tablesPerHouse: Math.round(count / houses) };
  });
}

function historiesOf(histories: readonly number[]): Stage[] {
  return histories
    .filter((history) => history > 0)
    .map((history) => {
      const houses = HISTORY_TABLES / USUAL.tablesPerHouse;
      return { ...USUAL, name: `history: ${history}`, houses, history };
    });
}

/** @throws UsageError if the text is not a whole number */
function wholeNumber(name: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new UsageError(`--${name}: expected whole numbers with commas between, got ${JSON.stringify(text)}`);
}

/** The CPU time of worker, API, PostgreSQL and Redis per round, in milliseconds. */
function cpuPerRound({ cpu, seconds, rounds }: StageResult): number {
  return ((cpu.worker + cpu.api + cpu.postgres + cpu.redis) * seconds * 1_000) / Math.max(1, rounds);
}

function tablesOf({ houses, tablesPerHouse }: Stage): number {
  return houses * tablesPerHouse;
}

function rowOf(found: StageResult): Record<string, string | number> {
  const { stage, seconds, rounds, cpu } = found;
  const perRound = (count: number) => round(count / Math.max(1, rounds), 1);
  return {
    stage: stage.name,
    houses: stage.houses,
    tables: tablesOf(stage),
    live: found.live,
    coverage: round(found.coverage, 4),
    rounds_per_second: round(rounds / seconds, 2),
    requests_per_second: round(found.requests / seconds, 1),
    lag_p50_ms: Math.round(found.lag.p50),
    lag_p99_ms: Math.round(found.lag.p99),
    late_p99_ms: Math.round(found.lateness.p99),
    cpu_ms_per_round: round(cpuPerRound(found), 2),
    ...Object.fromEntries(MEASURED_PROCESSES.map((who) => [`cpu_${who}`, round(cpu[who], 3)])),
    cpu_bare_fetch: round(found.bare.cpu, 3),
    mb_worker: Math.round(found.megabytes.worker),
    mb_api: Math.round(found.megabytes.api),
    mb_postgres: Math.round(found.megabytes.postgres),
    mb_redis: Math.round(found.megabytes.redis),
    take_over_ms: Math.round(found.tableMemory.takeOverMs),
    kb_per_table: round(found.tableMemory.bytesPerTable / 1_024, 1),
    redis_commands_per_second: Math.round(found.redisCommands),
    transactions_per_second: Math.round(found.transactions),
    wal_bytes_per_round: Math.round(perRound(found.walBytes)),
    rows_per_round: perRound(found.rows),
    forecasts_per_round: perRound(found.forecasts),
    kept_bytes_per_round: Math.round(perRound(found.keptBytes)),
    answer_bytes_per_round: Math.round(perRound(found.answerBytes)),
    lag_samples: found.lag.samples,
    late_samples: found.lateness.samples,
    not_modified_share: round(found.unchangedShare, 3),
  };
}

const SHOWN = [
  "stage live coverage rounds_per_second requests_per_second lag_p50_ms lag_p99_ms late_p99_ms cpu_ms_per_round",
  "cpu_worker cpu_api cpu_postgres cpu_redis cpu_bare_fetch mb_worker mb_api mb_postgres mb_redis take_over_ms kb_per_table",
  "transactions_per_second rows_per_round",
].flatMap((columns) => columns.split(" "));

/** The resources that a stage needs, in one line. */
function capacityNote({ stage, cpu, megabytes, keptBytes, answerBytes, seconds }: StageResult): string {
  const cores = cpu.worker + cpu.api + cpu.postgres + cpu.redis;
  const memory = megabytes.worker + megabytes.api + megabytes.postgres + megabytes.redis;
  const perDay = (bytes: number) => `${((bytes / seconds) * 86_400 * 1e-9).toFixed(1)} GB`;
  return `${stage.name}: ${cores.toFixed(2)} cores, ${Math.round(memory)} MB, ${perDay(keptBytes)} per day of permanent data, ${perDay(answerBytes)} per day of payloads that expire after two days`;
}

function plotPoint(found: StageResult) {
  return { tables: tablesOf(found.stage), cpuMs: cpuPerRound(found), lagMs: found.lag.p99, lateMs: found.lateness.p99 };
}

/** The targets that a stage missed. */
function failuresAmong(all: readonly StageResult[]): (found: StageResult) => string[] {
  const least = new Map(all.map((found) => [kindOf(found), found] as const).toReversed());
  return (found) => {
    const { stage, lag, lateness, live } = found;
    const failures: string[] = [];
    const miss = (isMissed: boolean, text: string) => {
      if (isMissed) failures.push(`${stage.name}: ${text}`);
    };
    miss(live < tablesOf(stage), `every table live, ${live} of ${tablesOf(stage)} are`);
    if (kindOf(found) === "lag") {
      const beyond = lag.p99 - stage.pollMs;
      miss(
        beyond >= TARGETS.beyondPollMs,
        `lag p99 within ${TARGETS.beyondPollMs} ms beyond the poll, got ${Math.round(beyond)}`,
      );
    }
    if (kindOf(found) === "tables") {
      miss(
        found.coverage < TARGETS.coverage,
        `a forecast set after ${TARGETS.coverage} of all rounds, got ${found.coverage}`,
      );
      miss(lag.p99 > TARGETS.lagMs, `lag p99 within ${TARGETS.lagMs} ms, got ${Math.round(lag.p99)}`);
    }
    if (["tables", "punctual"].includes(kindOf(found))) {
      miss(
        lateness.p99 >= TARGETS.latenessMs,
        `polls late by at most ${TARGETS.latenessMs} ms, p99 is ${Math.round(lateness.p99)}`,
      );
    }
    const first = least.get(kindOf(found)) ?? found;
    const grown = cpuPerRound(found) / cpuPerRound(first);
    const most = { workers: TARGETS.workers, year: TARGETS.year }[kindOf(found)] ?? TARGETS.growth;
    miss(grown > most, `the cost of a round at most ${most} × that of ${first.stage.name}, got ${grown.toFixed(2)}`);
    const { takeOverMs, takenOver } = found.tableMemory;
    miss(
      takeOverMs > TARGETS.takeOverMs,
      `${takenOver} tables taken over within ${TARGETS.takeOverMs} ms, got ${Math.round(takeOverMs)}`,
    );
    const mostMb = TARGETS.workerMb + (TARGETS.tableKb * tablesOf(stage)) / 1_024;
    if (kindOf(found) === "tables") {
      const mb = Math.round(found.megabytes.worker);
      miss(mb > mostMb, `a worker of at most ${Math.round(mostMb)} MB, got ${mb}`);
    }
    const ordinary = least.get("ordinary");
    if (kindOf(found) === "mixed" && ordinary !== undefined) {
      const ratio = lateness.p99 / ordinary.lateness.p99;
      miss(
        ratio > TARGETS.mixed,
        `polls as punctual as without the faulty houses, p99 is ${ratio.toFixed(2)} × as late`,
      );
      miss(found.megabytes.worker > TARGETS.mixedMb, `a worker of at most ${TARGETS.mixedMb} MB`);
    }
    return failures;
  };
}

function kindOf({ stage }: StageResult): string {
  return stage.name.split(":")[0] ?? "";
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
