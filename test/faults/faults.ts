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
import { call } from "../simulate/callers.ts";
import { enterOwnMounts } from "../simulate/disks.ts";
import { checkRecomputed, checkUsageCounts } from "../simulate/final-checks.ts";
import { BACKUP_CASES } from "./backup-cases.ts";
import type { Fault, FaultCase } from "./case.ts";
import { CROWD_CASES } from "./extra-house-cases.ts";
import { DAMAGE_CASES } from "./damage-cases.ts";
import { FROZEN_CASES } from "./frozen-worker-cases.ts";
import { waitForHealth } from "./wait-for-health.ts";
import { HELD_CASES } from "./row-lock-cases.ts";
import { NotReached } from "./locks.ts";
import { HOUSE_CASES } from "./house-cases.ts";
import { KILL_CASES } from "./kill-cases.ts";
import { LONG_CASES } from "./degradation-cases.ts";
import { NAME_CASES } from "./dns-cases.ts";
import { SERVER_CASES } from "./server-cases.ts";
import { SILENT_CASES } from "./silent-connection-cases.ts";
import { checkWhole } from "./check-nothing-lost.ts";
import { WORKER_CASES } from "./worker-cases.ts";
import { startWorld, type World } from "./testbed.ts";
import { WRONG_ID_CASES } from "./wrong-id-cases.ts";

const CASES: readonly FaultCase[] = [
  ...KILL_CASES,
  ...SERVER_CASES,
  ...SILENT_CASES,
  ...FROZEN_CASES,
  ...HELD_CASES,
  ...HOUSE_CASES,
  ...WORKER_CASES,
  ...LONG_CASES,
  ...NAME_CASES,
  ...WRONG_ID_CASES,
  ...DAMAGE_CASES,
  ...BACKUP_CASES,
  ...CROWD_CASES,
];
/** Recovery that is measured from the end of a short fault depends on how busy the machine is: up to this many times the target passes. */
const BOUND = 3;
/** A fault that lasts must be over for polling within the target itself; it is watched longer to report how long it takes. */
const WATCHED = 3;
/** How long it is waited where no time is asked. */
const PATIENCE_SECONDS = 60;
/** How long it is watched what is usual, before each case. */
const USUAL_MS = 3_000;

/** What became of a case. */
interface Result {
  name: string;
  /** From when `seconds` are measured. */
  from: FaultCase["from"];
  /** Until all houses are polled at their pace; null if they were not in time. */
  seconds: number | null;
  /** The same from the case's beginning, for a fault that heals and is measured from its end. */
  sinceBeginningSeconds: number | null;
  askedSeconds: number | null;
  /** The most seconds that pass; null if any do. */
  mostSeconds: number | null;
  /** The longest silence between two polls of a house just before: what is usual on this machine now. */
  usualSeconds: number;
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

const noDisk = await enterOwnMounts();
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
  const world = await startWorld(say);
  const results: Result[] = [];
  let broken: string | null = null;
  try {
    const started = await world.polls.recovered(Date.now(), 120_000);
    if (started === null) throw new Error("not all houses were polled within two minutes of the start");
    say(`${world.houses.length} houses are polled by ${world.workers.length} workers`);
    for (const one of cases) {
      say(one.name);
      const result = await runCase(world, one);
      results.push(result);
      say(`  ${result.broken ?? `${fixed(result.seconds)} s; ${result.seen || "nothing lost"}`}`);
      if (result.isLasting) break;
    }
    if (results.every((result) => result.broken === null)) {
      await checkUsageCounts(world.sql);
      await checkRecomputed(world.servers.databaseUrl);
    }
  } catch (error) {
    broken = reasonOf(error);
    say(broken);
  }
  const folder = await world.close(broken !== null || !results.every(isGood));
  return { results, folder, broken };
}

/** One case, with a caller at work throughout. */
async function runCase(world: World, one: FaultCase): Promise<Result> {
  const { truth, api, caller, polls } = world;
  const { name, askedSeconds, from, watchSeconds } = one;
  const mostSeconds = askedSeconds === null ? null : askedSeconds * (watchSeconds === undefined ? BOUND : 1);
  const result: Result = {
    name,
    from,
    seconds: null,
    sinceBeginningSeconds: null,
    askedSeconds,
    mostSeconds,
    usualSeconds: 0,
    seen: "",
    broken: null,
    isLasting: false,
  };
  const unhealthy = await waitForHealth(world);
  if (unhealthy !== null) {
    return { ...result, isLasting: true, broken: `the world was not healthy before it: ${unhealthy}` };
  }
  const sinceMs = Date.now();
  await delay(USUAL_MS);
  result.usualSeconds = polls.learnPace(sinceMs);
  const ended = new AbortController();
  const calling = call(caller, { truth, apis: [api], pauseMs: 30, signal: ended.signal });
  calling.catch(() => undefined); // it is waited for below
  try {
    const beganMs = Date.now();
    const fault = await one.run(world);
    result.seen = fault.seen ?? "";
    try {
      await measure(world, one, fault, result);
      if (result.seconds !== null)
        result.sinceBeginningSeconds = result.seconds + Math.max(0, fault.fromMs - beganMs) / 1_000;
    } finally {
      await fault.end?.();
    }
    ended.abort();
    await calling;
    result.isLasting = true;
    await checkWhole(world, Date.now());
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
  world: World,
  { askedSeconds, watchSeconds, houses }: FaultCase,
  { fromMs }: Fault,
  result: Result,
): Promise<void> {
  const { polls } = world;
  const chosen = houses?.(world);
  if (watchSeconds === undefined) {
    const patience = (askedSeconds === null ? PATIENCE_SECONDS : BOUND * askedSeconds) * 1_000;
    result.seconds = await polls.recovered(fromMs, Date.now() - fromMs + patience, chosen);
    if (result.seconds === null) result.broken = `not all houses are polled again within ${patience / 1_000} s`;
    return;
  }
  const patience = Math.max(watchSeconds, WATCHED * (askedSeconds ?? 0)) * 1_000;
  const { seconds, perHouse } = await polls.settled(
    fromMs,
    { watchMs: watchSeconds * 1_000, patienceMs: patience },
    chosen,
  );
  result.seconds = seconds;
  if (seconds === null || (result.mostSeconds !== null && seconds > result.mostSeconds)) {
    result.broken = `not all houses are polled again within ${result.mostSeconds ?? patience / 1_000} s: ${perHouse}`;
  }
}

function isGood({ broken, seconds, mostSeconds }: Result): boolean {
  return broken === null && seconds !== null && (mostSeconds === null || seconds <= mostSeconds);
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
    results.map(({ name, from, seconds, sinceBeginningSeconds, askedSeconds, usualSeconds, seen, broken: why }) => [
      name,
      fixed(seconds),
      from,
      fixed(sinceBeginningSeconds),
      askedSeconds ?? "-",
      fixed(usualSeconds),
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
