/**
 * `npm run faults`: causes each known fault with real processes and servers, and measures the recovery.
 *
 * All cases run one after another in one testbed, which must be healthy before each. After each case every invariant must
 * hold and nothing may be lost; at the end `verify` recomputes everything.
 *
 * Exit code 1 if an invariant fails, if recovery takes more than three times its target, if it takes longer than the target
 * during a fault that lasts, or if three attempts do not reach the state that a case needs. Exit code 2 for wrong usage. A
 * case that is not possible on this machine is not tested, which is reported and has exit code 0.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Command } from "commander";
import { print, printJson, printTable, say } from "../../src/cli/output.ts";
import { reasonOf, UsageError } from "../../src/errors.ts";
import { sendCalls } from "../simulate/callers.ts";
import { enterMountNamespace } from "../simulate/disks.ts";
import { verifyRecord, checkUsageCounts } from "../simulate/final-checks.ts";
import { BACKUP_CASES } from "./backup-cases.ts";
import type { Fault, FaultCase } from "./case.ts";
import { EXTRA_HOUSE_CASES } from "./extra-house-cases.ts";
import { DAMAGE_CASES } from "./damage-cases.ts";
import { FROZEN_WORKER_CASES } from "./frozen-worker-cases.ts";
import { waitForHealth } from "./wait-for-health.ts";
import { ROW_LOCK_CASES } from "./row-lock-cases.ts";
import { NotPossible, NotReached } from "./locks.ts";
import { HOUSE_CASES } from "./house-cases.ts";
import { KILL_CASES } from "./kill-cases.ts";
import { DEGRADATION_CASES } from "./degradation-cases.ts";
import { DNS_CASES } from "./dns-cases.ts";
import { SERVER_CASES } from "./server-cases.ts";
import { SILENT_CONNECTION_CASES } from "./silent-connection-cases.ts";
import { checkNothingLost } from "./check-nothing-lost.ts";
import { WORKER_CASES } from "./worker-cases.ts";
import { startTestbed, type Testbed } from "./testbed.ts";
import { WRONG_ID_CASES } from "./wrong-id-cases.ts";

const CASES: readonly FaultCase[] = [
  ...KILL_CASES,
  ...SERVER_CASES,
  ...SILENT_CONNECTION_CASES,
  ...FROZEN_WORKER_CASES,
  ...ROW_LOCK_CASES,
  ...HOUSE_CASES,
  ...WORKER_CASES,
  ...DEGRADATION_CASES,
  ...DNS_CASES,
  ...WRONG_ID_CASES,
  ...DAMAGE_CASES,
  ...BACKUP_CASES,
  ...EXTRA_HOUSE_CASES,
];
/** Recovery from a short fault may take this many times its target, since it depends on how busy the machine is. */
const LIMIT_FACTOR = 3;
/** Recovery during a lasting fault is limited by the target itself, but watched for this many times as long, to report it. */
const WATCH_FACTOR = 3;
/** The timeout of cases without a target. */
const TIMEOUT_SECONDS = 60;
/** How often a case is tried until the state that it needs is reached. */
const ATTEMPTS = 3;
/** How long the normal silence is measured before each case. */
const NORMAL_MS = 3_000;

/** The result of a case. */
interface Result {
  name: string;
  /** The start of `seconds`. */
  from: FaultCase["from"];
  /** The time until all houses are polled at their pace; null after the timeout. */
  seconds: number | null;
  /** The same from the beginning of the case. */
  sinceBeginningSeconds: number | null;
  targetSeconds: number | null;
  /** The limit above which the case fails; null if it has none. */
  limitSeconds: number | null;
  /** The longest time between two polls of a house just before the case. */
  normalSeconds: number;
  /** Other observations. */
  observed: string;
  /** Whether this machine cannot cause the fault, so that the case is not tested. */
  isNotPossible: boolean;
  /** Whether the failure is that the state that the case needs was not reached. */
  isNotReached: boolean;
  /** Why the case failed; null if every invariant held. */
  failure: string | null;
  /** Whether the failure would affect later cases: a violated invariant, or a testbed that does not become healthy. */
  isLasting: boolean;
}

interface Given {
  case?: string[];
  from?: string;
  short: boolean;
  list: boolean;
  json: boolean;
}

const noDisk = await enterMountNamespace();
if (noDisk !== null) say(`disks cannot be filled on this machine (${noDisk}): the case of a full disk is not tested`);

const program = new Command("npm run faults --")
  .description(
    "cause faults of processes, servers, networks, disks and clocks, measure the recovery, and check that nothing is lost",
  )
  .option("--case <name...>", "only the cases whose name contains this text")
  .option("--from <name>", "start at the first case whose name contains this text")
  .option("--short", "only a few cases, as a quick check", false)
  .option("--list", "list the names of the cases without running them", false)
  .option("--json", "print one JSON object", false)
  .exitOverride((error) => {
    process.exit(error.exitCode === 0 ? 0 : 2);
  })
  .action(async (given: Given) => {
    const chosen = choose(given);
    if (given.list) return print(chosen.map(({ name }) => name).join("\n"));
    const { results, folder, failure } = await runAll(chosen);
    const isOk = failure === null && results.every(hasPassed);
    if (given.json) await printJson({ ok: isOk, failure, results });
    else await printResults(results, failure);
    if (folder !== null) say(`the logs of every process are in ${folder}`);
    if (!isOk) process.exitCode = 1;
  });
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  say(error.message);
  process.exitCode = 2;
}

function choose({ case: names = [], from, short }: Given): FaultCase[] {
  const unknown = [...names, ...(from === undefined ? [] : [from])].find(
    (part) => !CASES.some(({ name }) => name.includes(part)),
  );
  if (unknown !== undefined)
    throw new UsageError(`expected a part of a case's name, got ${JSON.stringify(unknown)}; see --list`);
  const left = from === undefined ? CASES : CASES.slice(CASES.findIndex(({ name }) => name.includes(from)));
  if (names.length > 0) return left.filter(({ name }) => names.some((part) => name.includes(part)));
  return short ? left.filter(({ isShort }) => isShort === true) : [...left];
}

async function runAll(cases: readonly FaultCase[]) {
  const testbed = await startTestbed(say);
  const results: Result[] = [];
  let failure: string | null = null;
  try {
    const started = await testbed.polls.waitForRecovery(Date.now(), 120_000);
    if (started === null) throw new Error("expected all houses to be polled within two minutes of the start");
    say(`${testbed.houses.length} houses are polled by ${testbed.workers.length} workers`);
    for (const one of cases) {
      say(one.name);
      let result = await runCase(testbed, one);
      for (let attempt = 1; result.isNotReached && attempt < ATTEMPTS; attempt++) {
        say(`  again, since its state was not reached: ${result.failure}`);
        result = await runCase(testbed, one);
      }
      results.push(result);
      say(`  ${result.failure ?? `${fixed(result.seconds)} s; ${result.observed || "nothing lost"}`}`);
      if (result.isLasting) break;
    }
    if (results.every((result) => result.failure === null)) {
      await checkUsageCounts(testbed.sql);
      await verifyRecord(testbed.servers.databaseUrl);
    }
  } catch (error) {
    failure = reasonOf(error);
    say(failure);
  }
  const folder = await testbed.close(failure !== null || !results.every(hasPassed));
  return { results, folder, failure };
}

/** Runs one case, during which a caller sends requests. */
async function runCase(testbed: Testbed, one: FaultCase): Promise<Result> {
  const { truth, api, caller, polls } = testbed;
  const { name, targetSeconds, from, watchSeconds } = one;
  const limitSeconds = targetSeconds === null ? null : targetSeconds * (watchSeconds === undefined ? LIMIT_FACTOR : 1);
  const result: Result = {
    name,
    from,
    seconds: null,
    sinceBeginningSeconds: null,
    targetSeconds,
    limitSeconds,
    normalSeconds: 0,
    observed: "",
    isNotPossible: false,
    isNotReached: false,
    failure: null,
    isLasting: false,
  };
  const unhealthy = await waitForHealth(testbed);
  if (unhealthy !== null) {
    return { ...result, isLasting: true, failure: `the testbed was not healthy before the case: ${unhealthy}` };
  }
  const sinceMs = Date.now();
  await delay(NORMAL_MS);
  result.normalSeconds = polls.learnPace(sinceMs);
  const ended = new AbortController();
  const calling = sendCalls(caller, { truth, apis: [api], pauseMs: 30, signal: ended.signal });
  calling.catch(() => undefined); // awaited below
  try {
    const beganMs = Date.now();
    const fault = await one.run(testbed);
    result.observed = fault.observed ?? "";
    try {
      await measure(testbed, one, fault, result);
      if (result.seconds !== null)
        result.sinceBeginningSeconds = result.seconds + Math.max(0, fault.fromMs - beganMs) / 1_000;
    } finally {
      await fault.end?.();
    }
    ended.abort();
    await calling;
    result.isLasting = true;
    await checkNothingLost(testbed, Date.now());
    result.isLasting = false;
  } catch (error) {
    if (error instanceof NotPossible) Object.assign(result, { observed: error.message, isNotPossible: true });
    else Object.assign(result, { failure: reasonOf(error), isNotReached: error instanceof NotReached });
  } finally {
    ended.abort();
    await calling.catch(() => undefined);
  }
  return result;
}

/** Stores in `result` how long polling took to recover, or that it did not. */
async function measure(
  testbed: Testbed,
  { targetSeconds, watchSeconds, houses }: FaultCase,
  { fromMs }: Fault,
  result: Result,
): Promise<void> {
  const { polls } = testbed;
  const chosen = houses?.(testbed);
  if (watchSeconds === undefined) {
    const timeoutMs = (targetSeconds === null ? TIMEOUT_SECONDS : LIMIT_FACTOR * targetSeconds) * 1_000;
    result.seconds = await polls.waitForRecovery(fromMs, Date.now() - fromMs + timeoutMs, chosen);
    if (result.seconds === null) result.failure = `not all houses are polled again within ${timeoutMs / 1_000} s`;
    return;
  }
  const timeoutMs = Math.max(watchSeconds, WATCH_FACTOR * (targetSeconds ?? 0)) * 1_000;
  const { seconds, perHouse } = await polls.waitForLastSilence(
    fromMs,
    { watchMs: watchSeconds * 1_000, timeoutMs: timeoutMs },
    chosen,
  );
  result.seconds = seconds;
  if (seconds === null || (result.limitSeconds !== null && seconds > result.limitSeconds)) {
    result.failure = `not all houses are polled again within ${result.limitSeconds ?? timeoutMs / 1_000} s: ${perHouse}`;
  }
}

function hasPassed({ failure, seconds, limitSeconds, isNotPossible }: Result): boolean {
  if (failure !== null || isNotPossible) return failure === null;
  return seconds !== null && (limitSeconds === null || seconds <= limitSeconds);
}

async function printResults(results: readonly Result[], failure: string | null): Promise<void> {
  await printTable(
    [
      "case",
      "recovery s",
      "measured from",
      "from the beginning s",
      "target s",
      "silence before s",
      "invariants",
      "observed",
    ],
    results.map((result) => [
      result.name,
      fixed(result.seconds),
      result.from,
      fixed(result.sinceBeginningSeconds),
      result.targetSeconds ?? "-",
      fixed(result.normalSeconds),
      result.failure !== null ? "failed" : result.isNotPossible ? "not tested" : "hold",
      result.observed,
    ]),
  );
  for (const { name, failure: why } of results) if (why !== null) await print(`\n${name}: ${why}`);
  if (failure !== null) await print(`failed: ${failure}`);
}

function fixed(seconds: number | null): string {
  return seconds === null ? "-" : seconds.toFixed(1);
}
