import { groupFailures, type QueueState, type Run } from "../../queue/runs/inspect.ts";
import { paint, printTable, say, snakeKeys } from "../output.ts";

/** The JSON form of a queue. */
export function stateForPrograms({ paused, ...state }: QueueState): object {
  return {
    ...snakeKeys(state),
    paused: paused && { at: paused.pausedAt, by: paused.pausedBy, reason: paused.reason, until: paused.until },
  };
}

/** The JSON form of a failed run. */
export function runForPrograms({ queue, id, payload, reason, attempts, failedAt }: Run): object {
  return { queue, id, payload, reason, attempts, failed_at: failedAt };
}

/** Prints queues as a table. */
export async function showStates(states: QueueState[]): Promise<void> {
  await printTable(
    ["queue", "waiting", "active", "delayed", "failed", "schedules", "paused"],
    states.map(({ queue, waiting, active, delayed, failed, schedules, paused }) => [
      queue,
      waiting,
      active,
      delayed,
      failed > 0 ? paint.red(`${failed}`) : failed,
      schedules,
      paused && paint.cyan(`by ${paused.pausedBy}${untilText(paused.until)}: ${paused.reason}`),
    ]),
  );
}

function untilText(until: Date | null): string {
  return until === null ? "" : ` until ${until.toISOString().slice(0, 16)}Z`;
}

/** Prints failed runs as a table. */
export async function showRuns(runs: Run[]): Promise<void> {
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

/** Prints failed runs counted by reason. */
export async function showGroups(runs: Run[]): Promise<void> {
  if (runs.length === 0) return say("no failed runs");
  await printTable(
    ["runs", "oldest", "newest", "reason"],
    groupFailures(runs).map(({ runs: count, oldest, newest, reason }) => [
      count,
      oldest?.toISOString(),
      newest?.toISOString(),
      reason,
    ]),
  );
}
