import { Command } from "commander";
import { jobs } from "../../jobs/index.ts";
import { createLog } from "../log.ts";
import {
  type FailedRun,
  listFailed,
  listQueues,
  pauseQueue,
  type QueueState,
  resumeQueue,
  retryFailed,
} from "../queue/inspect.ts";
import { openQueues, type Queues } from "../queue/queues.ts";
import { examples, someText, wholeNumber } from "./arguments.ts";
import { operator } from "./operator.ts";
import { paint, print, printJson, printTable, say } from "./output.ts";
import { requireRedis, type Session, withDatabase } from "./session.ts";

/** `roundhouse queue …`: the queues for a night without a browser. */
export function queueCommand(): Command {
  const command = new Command("queue").description("the queues between the stages");
  command
    .command("list")
    .description("what each queue holds, and which are paused, by whom and why")
    .option("--json", "print a JSON array", false)
    .addHelpText("after", examples("queue list", "queue list --json"))
    .action(({ json }: { json: boolean }) =>
      withQueues(async ({ sql }, queues) => {
        const states = await listQueues(queues, sql);
        return json ? printJson(states.map(stateForPrograms)) : showStates(states);
      }),
    );
  command
    .command("failed")
    .description(
      "runs that failed for good, newest first; runs of a schedule are tried again by themselves and not listed",
    )
    .argument("[queue]", "only those of this queue")
    .option("--limit <number>", "at most so many", wholeNumber(1, 10_000), 50)
    .option("--json", "print a JSON array", false)
    .addHelpText("after", examples("queue failed", "queue failed backfill-gap --json"))
    .action((queue: string | undefined, { limit, json }: { limit: number; json: boolean }) =>
      withQueues(async (_, queues) => {
        const runs = await listFailed(queues, { queue, limit });
        return json ? printJson(runs.map(runForPrograms)) : showRuns(runs);
      }),
    );
  command
    .command("retry")
    .description("put failed runs of a queue back to work")
    .argument("<queue>", "the queue")
    .argument("[id]", "one run; all of them without it")
    .option("--json", "print a JSON object", false)
    .addHelpText("after", examples("queue retry normalize-rounds", "queue retry backfill-gap 42"))
    .action((queue: string, id: string | undefined, { json }: { json: boolean }) =>
      withQueues(async (_, queues) => {
        const retried = await retryFailed(queues, queue, id ?? null);
        return json ? printJson({ queue, retried }) : print(`${retried} runs of ${queue} are tried again`);
      }),
    );
  command
    .command("pause")
    .description("begin no more runs of a queue; what runs goes on, and nothing is lost")
    .argument("<queue>", "the queue")
    .requiredOption("--reason <text>", "why, for those who wonder", someText)
    .addHelpText("after", examples('queue pause backfill-gap --reason "the house asked us to slow down"'))
    .action((queue: string, { reason }: { reason: string }) =>
      withQueues(async ({ sql }, queues) => {
        await pauseQueue(sql, queues, { queue, by: operator(), reason });
        await print(`${queue} is paused`);
      }),
    );
  command
    .command("resume")
    .description("let a paused queue go on")
    .argument("<queue>", "the queue")
    .option("--reason <text>", "why, for the log", someText)
    .addHelpText("after", examples("queue resume backfill-gap"))
    .action((queue: string, { reason }: { reason?: string }) =>
      withQueues(async ({ sql }, queues) => {
        await resumeQueue(sql, queues, queue);
        if (reason !== undefined) say(`resumed by ${operator()}: ${reason}`);
        await print(`${queue} goes on`);
      }),
    );
  return command;
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

function stateForPrograms({ waitingSince, paused, ...state }: QueueState): object {
  return {
    ...state,
    waiting_since: waitingSince,
    paused: paused && { at: paused.pausedAt, by: paused.pausedBy, reason: paused.reason },
  };
}

function runForPrograms({ failedAt, ...run }: FailedRun): object {
  return { ...run, failed_at: failedAt };
}

async function showStates(states: QueueState[]): Promise<void> {
  await printTable(
    ["queue", "waiting", "active", "delayed", "failed", "schedules", "paused"],
    states.map(({ queue, waiting, active, delayed, failed, schedules, paused }) => [
      queue,
      waiting,
      active,
      delayed,
      failed > 0 ? paint.red(`${failed}`) : failed,
      schedules,
      paused && paint.cyan(`by ${paused.pausedBy}: ${paused.reason}`),
    ]),
  );
}

async function showRuns(runs: FailedRun[]): Promise<void> {
  if (runs.length === 0) return say("no failed runs");
  await printTable(
    ["queue", "id", "failed at", "attempts", "payload", "reason"],
    runs.map(({ queue, id, failedAt, attempts, payload, reason }) => [
      queue,
      id,
      failedAt?.toISOString(),
      attempts,
      JSON.stringify(payload),
      reason,
    ]),
  );
}
