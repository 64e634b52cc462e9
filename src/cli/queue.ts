import { Command, Option } from "commander";
import { jobs } from "../../jobs/index.ts";
import { UsageError } from "../errors.ts";
import { createLog } from "../log.ts";
import {
  chooseFailed,
  type ControlOutcome,
  discardRuns,
  listFailed,
  listQueues,
  pauseFacts,
  pauseQueue,
  resumeQueue,
  retryRuns,
  listPauses,
} from "../queue/inspect.ts";
import { openQueues, type Queues } from "../queue/queues.ts";
import { examples, someText, wholeNumber } from "./arguments.ts";
import { tellAudit } from "./audited.ts";
import { momentAhead } from "./moment.ts";
import { operator } from "./operator.ts";
import { print, printJson, say } from "./output.ts";
import { runForPrograms, showRuns, showStates, stateForPrograms } from "./queue-text.ts";
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
        const states = await listQueues(queues, await listPauses(sql));
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
      actOnFailed({ action: "queue.retry", queue, id: id ?? null, reason: null }, retryRuns, ({ done }) =>
        json ? printJson({ queue, retried: done }) : print(`${done} runs of ${queue} are tried again`),
      ),
    );
  command
    .command("discard")
    .description("forget failed runs of a queue; what its job finds undone is asked for again by itself")
    .argument("<queue>", "the queue")
    .argument("[id]", "one run; all of them without it")
    .requiredOption("--reason <text>", "why, for the log", someText)
    .option("--json", "print a JSON object", false)
    .addHelpText("after", examples('queue discard backfill-gap 42 --reason "the gap was closed by hand"'))
    .action((queue: string, id: string | undefined, { reason, json }: { reason: string; json: boolean }) =>
      actOnFailed({ action: "queue.discard", queue, id: id ?? null, reason }, discardRuns, ({ done }) =>
        json ? printJson({ queue, discarded: done }) : print(`${done} runs of ${queue} are discarded`),
      ),
    );
  command
    .command("pause")
    .description("begin no more runs of a queue; what runs goes on, and nothing is lost")
    .argument("<queue>", "the queue")
    .requiredOption("--reason <text>", "why, for those who wonder", someText)
    .addOption(
      new Option("--for <time>", "go on by itself after so long: 30m, 2h, 1d")
        .argParser(momentAhead)
        .conflicts("until"),
    )
    .option("--until <time>", "go on by itself at this time, such as 2026-11-21T06:00 (UTC)", momentAhead)
    .addHelpText(
      "after",
      examples(
        'queue pause backfill-gap --reason "the house asked us to slow down"',
        'queue pause calibrate-table --for 2h --reason "the machine is busy"',
      ),
    )
    .action((queue: string, { reason, until, for: length }: { reason: string; until?: string; for?: string }) =>
      withQueues(async ({ sql }, queues) => {
        const ends = until ?? length ?? null;
        const pause = { queue, by: operator(), reason, until: ends };
        const outcome = await pauseQueue(sql, queues, pause, (tx, { before, after }) => {
          const [was, is] = [pauseFacts(before), pauseFacts(after)];
          return tellAudit(tx, { action: "queue.pause", target: `queue ${queue}`, before: was, after: is, reason });
        });
        await tell(outcome, ends === null ? `${queue} is paused` : `${queue} is paused until ${ends}`);
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
        const outcome = await resumeQueue(sql, queues, { queue }, (tx, { before, after }) => {
          const change = { before: pauseFacts(before), after: pauseFacts(after), reason: reason ?? null };
          return tellAudit(tx, { action: "queue.resume", target: `queue ${queue}`, ...change });
        });
        if (reason !== undefined) say(`resumed by ${operator()}: ${reason}`);
        await tell(outcome, `${queue} goes on`);
      }),
    );
  return command;
}

/** Does something with failed runs. What is meant to be done is written down first: Redis knows no transaction with PostgreSQL. */
async function actOnFailed(
  { action, queue, id, reason }: { action: string; queue: string; id: string | null; reason: string | null },
  work: typeof retryRuns,
  show: (outcome: { done: number; changed: number }) => Promise<void>,
): Promise<void> {
  await withQueues(async ({ sql }, queues) => {
    const chosen = await chooseFailed(queues, queue, id);
    const target = id === null ? `queue ${queue}` : `run ${id} of queue ${queue}`;
    const after = { runs: chosen.length };
    await sql.begin((tx) => tellAudit(tx, { action, target, after, reason }));
    await show(
      await work(
        queues,
        queue,
        chosen.map(({ token }) => token),
      ),
    );
  });
}

async function tell(outcome: ControlOutcome, done: string): Promise<void> {
  if (outcome.kind === "refused") throw new UsageError(outcome.problem);
  if (!outcome.isTold) say("Redis is away; it is told within seconds of its coming back");
  await print(done);
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
