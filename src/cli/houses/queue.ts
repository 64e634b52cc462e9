import { setTimeout } from "node:timers/promises";
import { Argument, Command, Option } from "commander";
import { jobs } from "../../../jobs/index.ts";
import type { Decided, Made } from "../../audit/decision.ts";
import type { Transaction } from "../../db/client.ts";
import { UsageError } from "../../errors.ts";
import { createLog } from "../../log.ts";
import {
  chooseFailed,
  describeReached,
  discardRuns,
  listFailed,
  listQueues,
  pauseQueue,
  resumeQueue,
  retryRuns,
  listPauses,
  runsEntry,
} from "../../queue/runs/inspect.ts";
import { openQueues, type Queues } from "../../queue/queues.ts";
import { examples, someText, wholeNumber } from "../arguments.ts";
import { appendCommandAudit } from "../audited.ts";
import { momentAhead } from "../time-argument.ts";
import { operator } from "../operator.ts";
import { print, printJson, say } from "../output.ts";
import { isAgreed } from "../confirm-prompt.ts";
import { runForPrograms, showGroups, showRuns, showStates, stateForPrograms } from "./queue-text.ts";
import { requireRedis, type Session, withDatabase } from "../session.ts";

const WATCH_MS = 2_000;

interface PauseArguments {
  reason: string;
  until?: string;
  for?: string;
  json: boolean;
}

/** `roundhouse queue …`: control of the queues without a browser. */
export function queueCommand(): Command {
  const command = new Command("queue")
    .description("the queues between the stages")
    .addHelpText("after", examples("queue list", "queue retry normalize-rounds"));
  addList(command);
  addFailed(command);
  addRetry(command);
  addDiscard(command);
  addPause(command);
  addResume(command);
  return command;
}

function addList(command: Command): void {
  command
    .command("list")
    .description("list queues with their runs, and which are paused, by whom and why")
    .option("--watch", "refresh every two seconds, until Ctrl-C", false)
    .option("--json", "print a JSON array; with --watch one per line", false)
    .addHelpText("after", examples("queue list", "queue list --watch", "queue list --json"))
    .action(({ watch, json }: { watch: boolean; json: boolean }) =>
      withQueues(async ({ sql }, queues) => {
        for (;;) {
          const states = await listQueues(queues, await listPauses(sql));
          if (watch && !json && process.stdout.isTTY) console.clear();
          await (json ? printJson(states.map(stateForPrograms)) : showStates(states));
          if (!watch) return;
          await setTimeout(WATCH_MS);
        }
      }),
    );
}

function addFailed(command: Command): void {
  command
    .command("failed")
    .description(
      "list permanently failed runs, newest first; scheduled runs are repeated by their schedule and not listed",
    )
    .addArgument(queueArgument("[queue]", "only those of this queue"))
    .option("--limit <number>", "at most this many", wholeNumber(1, 10_000), 50)
    .option("--json", "print a JSON array", false)
    .addHelpText("after", examples("queue failed", "queue failed backfill-gap --json"))
    .action((queue: string | undefined, { limit, json }: { limit: number; json: boolean }) =>
      withQueues(async (_, queues) => {
        const runs = await listFailed(queues, { queue, limit });
        return json ? printJson(runs.map(runForPrograms)) : showRuns(runs);
      }),
    );
}

function addRetry(command: Command): void {
  command
    .command("retry")
    .description("retry failed runs of a queue")
    .addArgument(queueArgument("<queue>", "the queue"))
    .argument("[id]", "one run; all of them without it")
    .option("--reason <text>", "why, for the log", someText)
    .option("--json", "print a JSON object", false)
    .addHelpText("after", examples("queue retry normalize-rounds", "queue retry backfill-gap 42"))
    .action((queue: string, id: string | undefined, { reason, json }: { reason?: string; json: boolean }) =>
      withQueues(async ({ sql }, queues) => {
        const tokens = (await chooseFailed(queues, queue, id ?? null)).map(({ token }) => token);
        const entry = {
          ...runsEntry({ queue, state: "failed", tokens }),
          action: "queue.retry",
          reason: reason ?? null,
        };
        await sql.begin((tx) => appendCommandAudit(tx, entry));
        const reached = await retryRuns(queues, queue, tokens);
        await (json ? printJson({ queue, retried: reached.done }) : print(describeReached("retry", queue, reached)));
      }),
    );
}

function addDiscard(command: Command): void {
  command
    .command("discard")
    .description("discard failed runs of a queue; the job finds unfinished work again by itself")
    .addArgument(queueArgument("<queue>", "the queue"))
    .argument("[id]", "one run; all of them without it")
    .requiredOption("--reason <text>", "why, for the log", someText)
    .option("--dry-run", "show what would be discarded, and discard nothing", false)
    .option("--yes", "do not ask for confirmation", false)
    .option("--json", "print a JSON object", false)
    .addHelpText(
      "after",
      examples(
        'queue discard backfill-gap --reason "the gaps were closed manually" --dry-run',
        'queue discard backfill-gap 42 --reason "the gap was closed manually" --yes',
      ),
    )
    .action(discard);
}

function addPause(command: Command): void {
  command
    .command("pause")
    .description("start no more runs of a queue; active runs continue, and nothing is lost")
    .addArgument(queueArgument("<queue>", "the queue"))
    .requiredOption("--reason <text>", "the reason, shown to staff", someText)
    .addOption(
      new Option("--for <time>", "resume automatically after this time: 30m, 2h, 1d")
        .argParser(momentAhead)
        .conflicts("until"),
    )
    .option("--until <time>", "resume automatically at this time, such as 2026-11-21T06:00 (UTC)", momentAhead)
    .option("--json", "print a JSON object", false)
    .addHelpText(
      "after",
      examples(
        'queue pause backfill-gap --reason "the house asked us to slow down"',
        'queue pause calibrate-table --for 2h --reason "the machine is busy"',
      ),
    )
    .action((queue: string, { reason, until, for: length, json }: PauseArguments) =>
      withQueues(async ({ sql }, queues) => {
        const ends = until ?? length ?? null;
        const pause = { queue, by: operator(), reason, until: ends };
        const done = await pauseQueue(sql, queues, pause, entryOf("queue.pause", reason));
        await report(done, json, { queue, paused: true, reason, until: ends });
      }),
    );
}

function addResume(command: Command): void {
  command
    .command("resume")
    .description("resume a paused queue")
    .addArgument(queueArgument("<queue>", "the queue"))
    .option("--reason <text>", "why, for the log", someText)
    .option("--json", "print a JSON object", false)
    .addHelpText("after", examples("queue resume backfill-gap"))
    .action((queue: string, { reason, json }: { reason?: string; json: boolean }) =>
      withQueues(async ({ sql }, queues) => {
        const done = await resumeQueue(sql, queues, { queue }, entryOf("queue.resume", reason));
        await report(done, json, { queue, paused: false, reason: reason ?? null });
      }),
    );
}

function entryOf(action: string, reason: string | null = null) {
  return (tx: Transaction, made: Made) => appendCommandAudit(tx, { ...made, action, reason });
}

async function report(decided: Decided<{ isApplied: boolean }>, isJson: boolean, json: object): Promise<void> {
  if (!decided.ok) throw new Error(decided.problem);
  if (!isJson) return print(decided.message);
  if (!decided.isApplied) say(decided.message);
  await printJson(json);
}

function queueArgument(name: string, description: string): Argument {
  return new Argument(name, description).choices(jobs.map((job) => job.name));
}

interface DiscardArguments {
  reason: string;
  dryRun: boolean;
  yes: boolean;
  json: boolean;
}

async function discard(queue: string, id: string | undefined, given: DiscardArguments): Promise<void> {
  const { reason, dryRun, yes, json } = given;
  if (!dryRun && !yes && (json || !process.stdin.isTTY)) {
    throw new UsageError(
      "expected --yes, since there is no terminal to confirm on; --dry-run shows what would be discarded",
    );
  }
  await withQueues(async ({ sql }, queues) => {
    const chosen = await chooseFailed(queues, queue, id ?? null);
    if (dryRun) return json ? printJson({ queue, would_discard: chosen.map(runForPrograms) }) : showGroups(chosen);
    if (!yes) {
      await showGroups(chosen);
      if (chosen.length === 0) return;
      if (!(await isAgreed(`discard ${chosen.length} failed runs of ${queue}?`))) return say("nothing was discarded");
    }
    const runs = { queue, state: "failed", tokens: chosen.map(({ token }) => token) } as const;
    await sql.begin((tx) => appendCommandAudit(tx, { ...runsEntry(runs), action: "queue.discard", reason }));
    const reached = await discardRuns(queues, runs);
    await (json ? printJson({ queue, discarded: reached.done }) : print(describeReached("discard", queue, reached)));
  });
}

async function withQueues(work: (session: Session, queues: Queues) => Promise<void>): Promise<void> {
  await withDatabase(async (session) => {
    const queues = await openQueues(jobs, requireRedis(session), createLog("warn", process.stderr.isTTY));
    try {
      await work(session, queues);
    } finally {
      await queues.close();
    }
  });
}
