import { isOutage } from "../../db/errors.ts";
import { reasonOf } from "../../errors.ts";
import { createRepeatLevel, type Log } from "../../log.ts";

/** While PostgreSQL is away, the polls of all houses fail with the same reason. */
const outageLevel = createRepeatLevel();

/** Logs a failed poll: while PostgreSQL is away, one warning per minute without a stack. */
export function logFailedPoll(log: Log, error: unknown): void {
  const reason = reasonOf(error);
  const text = `a poll failed, and the next one tries again: ${reason}`;
  if (isOutage(error)) log[outageLevel(reason)](text);
  else log.warn({ err: error }, text);
}
