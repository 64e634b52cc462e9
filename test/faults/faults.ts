/**
 * `npm run faults`: everything that goes wrong by name, with real processes and servers, and how long it takes to recover.
 *
 * One world, all cases after one another, each from a healthy world. After each every invariant must hold and nothing may be lost; at the end
 * `verify` computes everything again. Exit code 1 if an invariant breaks, if recovery takes more than three times its target,
 * which no busy machine explains, or if it takes longer than the target during a fault that lasts.
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
import { NotReached } from "./locks.ts";
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
/** Recovery that is measured from the end of a short fault depends on how busy the machine is: up to this many times the target passes. */
const BOUND = 3;
/** A fault that lasts must be over for polling within the target itself; it is watched longer to report how long it takes. */
const WATCHED = 3;
/** How long it is waited where no time is asked. */
const PATIENCE_SECONDS = 60;
/** How long it is watched what is usual, before each case. */
const NORMAL_MS = 3_000;

/** What became of a case. */
interface Result {
  name: string;
  /** From when `seconds` are measured. */
  from: FaultCase["from"];
  /** Until all houses are polled at their pace; null if they were not in time. */
  seconds: number | null;
  /** The same from the case's beginning, for a fault that heals and is measured from its end. */
  sinceBeginningSeconds: number | null;
  targetSeconds: number | null;
  /** The most seconds that pass; null if any do. */
  limitSeconds: number | null;
  /** The longest silence between two polls of a house just before: what is usual on this machine now. */
  normalSeconds: number;
  /** What else was seen. */
  seen: string;
  /** Null where every invariant held. */
  broken: string | null;
  /** Whether later cases would only repeat what is broken: an invariant, or a world that did not become healthy. */
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
if (noDisk !== null) say(`no disk can be made to be full here (${noDisk}): the case of a full disk shows nothing`);

const program = new Command("npm run faults --")
  .description(
    "kill, empty, freeze and cut off what Roundhouse is made of, measure how long it takes to recover, and check that nothing is lost",
  )
  .option("--case <name...>", "only the cases of which the name has this in it")
  .option("--from <name>", "leave out the cases before the first of which the name has this in it")
  .option("--short", "a few of them, to see that it works", false)
  .option("--list", "name all cases and do none", false)
  .option("--json", "print one JSON object", false)
  .exitOverride((error) => {
    process.exit(error.exitCode === 0 ? 0 : 2);
  })
  .action(async (given: Given) => {
    const chosen = choose(given);
    if (given.list) return print(chosen.map(({ name }) => name).join("\n"));
    const { results, folder, broken } = await runAll(chosen);
    const isOk = broken === null && results.every(isGood);
    if (given.json) await printJson({ ok: isOk, broken, results });
    else await tell(results, broken);
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
  if (unknown !== undefined) throw new UsageError(`no case has ${JSON.stringify(unknown)} in its name; see --list`);
  const left = from === undefined ? CASES : CASES.slice(CASES.findIndex(({ name }) => name.includes(from)));
  if (names.length > 0) return left.filter(({ name }) => names.some((part) => name.includes(part)));
  return short ? left.filter(({ isShort }) => isShort === true) : [...left];
}

async function runAll(cases: readonly FaultCase[]) {
  const testbed = await startTestbed(say);
  const results: Result[] = [];
  let broken: string | null = null;
  try {
    const started = await testbed.polls.waitForRecovery(Date.now(), 120_000);
    if (started === null) throw new Error("not all houses were polled within two minutes of the start");
    say(`${testbed.houses.length} houses are polled by ${testbed.workers.length} workers`);
    for (const one of cases) {
      say(one.name);
      const result = await runCase(testbed, one);
      results.push(result);
      say(`  ${result.broken ?? `${fixed(result.seconds)} s; ${result.seen || "nothing lost"}`}`);
      if (result.isLasting) break;
    }
    if (results.every((result) => result.broken === null)) {
      await checkUsageCounts(testbed.sql);
      await verifyRecord(testbed.servers.databaseUrl);
    }
  } catch (error) {
    broken = reasonOf(error);
    say(broken);
  }
  const folder = await testbed.close(broken !== null || !results.every(isGood));
  return { results, folder, broken };
}

/** One case, with a caller at work throughout. */
async function runCase(testbed: Testbed, one: FaultCase): Promise<Result> {
  const { truth, api, caller, polls } = testbed;
  const { name, targetSeconds, from, watchSeconds } = one;
  const limitSeconds = targetSeconds === null ? null : targetSeconds * (watchSeconds === undefined ? BOUND : 1);
  const result: Result = {
    name,
    from,
    seconds: null,
    sinceBeginningSeconds: null,
    targetSeconds,
    limitSeconds,
    normalSeconds: 0,
    seen: "",
    broken: null,
    isLasting: false,
  };
  const unhealthy = await waitForHealth(testbed);
  if (unhealthy !== null) {
    return { ...result, isLasting: true, broken: `the testbed was not healthy before it: ${unhealthy}` };
  }
  const sinceMs = Date.now();
  await delay(NORMAL_MS);
  result.normalSeconds = polls.learnPace(sinceMs);
  const ended = new AbortController();
  const calling = sendCalls(caller, { truth, apis: [api], pauseMs: 30, signal: ended.signal });
  calling.catch(() => undefined); // it is waited for below
  try {
    const beganMs = Date.now();
    const fault = await one.run(testbed);
    result.seen = fault.seen ?? "";
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
    if (error instanceof NotReached) result.seen = error.message;
    else result.broken = reasonOf(error);
  } finally {
    ended.abort();
    await calling.catch(() => undefined);
  }
  return result;
}

/** Notes how long polling took to recover, or that it did not. */
async function measure(
  testbed: Testbed,
  { targetSeconds, watchSeconds, houses }: FaultCase,
  { fromMs }: Fault,
  result: Result,
): Promise<void> {
  const { polls } = testbed;
  const chosen = houses?.(testbed);
  if (watchSeconds === undefined) {
    const timeoutMs = (targetSeconds === null ? PATIENCE_SECONDS : BOUND * targetSeconds) * 1_000;
    result.seconds = await polls.waitForRecovery(fromMs, Date.now() - fromMs + timeoutMs, chosen);
    if (result.seconds === null) result.broken = `not all houses are polled again within ${timeoutMs / 1_000} s`;
    return;
  }
  const timeoutMs = Math.max(watchSeconds, WATCHED * (targetSeconds ?? 0)) * 1_000;
  const { seconds, perHouse } = await polls.settled(
    fromMs,
    { watchMs: watchSeconds * 1_000, timeoutMs: timeoutMs },
    chosen,
  );
  result.seconds = seconds;
  if (seconds === null || (result.limitSeconds !== null && seconds > result.limitSeconds)) {
    result.broken = `not all houses are polled again within ${result.limitSeconds ?? timeoutMs / 1_000} s: ${perHouse}`;
  }
}

function isGood({ broken, seconds, limitSeconds }: Result): boolean {
  return broken === null && seconds !== null && (limitSeconds === null || seconds <= limitSeconds);
}

async function tell(results: readonly Result[], broken: string | null): Promise<void> {
  await printTable(
    [
      "case",
      "polled again after s",
      "from the fault's",
      "since its beginning s",
      "asked s",
      "usual s",
      "invariants",
      "besides",
    ],
    results.map(({ name, from, seconds, sinceBeginningSeconds, targetSeconds, normalSeconds, seen, broken: why }) => [
      name,
      fixed(seconds),
      from,
      fixed(sinceBeginningSeconds),
      targetSeconds ?? "-",
      fixed(normalSeconds),
      why === null ? "hold" : "broken",
      seen,
    ]),
  );
  for (const { name, broken: why } of results) if (why !== null) await print(`\n${name}: ${why}`);
  if (broken !== null) await print(`broken: ${broken}`);
}

function fixed(seconds: number | null): string {
  return seconds === null ? "-" : seconds.toFixed(1);
}
