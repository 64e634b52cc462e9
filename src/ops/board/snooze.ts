import type { Tone } from "../../frame/text/format.ts";
import type { Role } from "../contract.ts";
import type { Problem } from "./problems.ts";

/** How long a problem is snoozed. `change`: until it changes, and for 30 days at most. */
export const SNOOZES = { "1h": 1, "8h": 8, change: 30 * 24 } as const;

/** The most problems that one form snoozes; of a larger group these are the first. */
export const MOST_SNOOZED = 500;

/** A problem that an operator has snoozed, as it was then. */
export interface Snooze {
  kind: string;
  subject: string;
  tone: Tone;
  what: string;
  since: Date | null;
  /** Ends with any change of the problem, and not only when it gets worse. */
  endsOnChange: boolean;
  until: Date;
  madeBy: string;
  madeAt: Date;
  reason: string;
}

const SEVERITY: Readonly<Record<Tone, number>> = { bad: 3, warn: 2, info: 1, quiet: 0, good: 0 };

/** Whether a role may snooze problems. */
export function maySnooze(role: Role): boolean {
  return role === "operator" || role === "admin";
}

/** Names a problem in a form: its kind and subject. */
export function problemKey({ kind, subject }: Pick<Problem, "kind" | "subject">): string {
  return `${kind} ${subject}`;
}

/**
 * Splits problems into open and snoozed ones. A snooze ends at its time, when the problem gets worse, and with
 * `endsOnChange` also when its text or its beginning changes.
 */
export function splitSnoozed<One extends Problem>(
  problems: readonly One[],
  snoozes: readonly Snooze[],
  now: Date,
): { open: One[]; snoozed: (One & { snooze: Snooze })[] } {
  const byKey = new Map(snoozes.map((snooze) => [problemKey(snooze), snooze]));
  const open: One[] = [];
  const snoozed: (One & { snooze: Snooze })[] = [];
  for (const problem of problems) {
    const snooze = byKey.get(problemKey(problem));
    if (snooze !== undefined && holds(snooze, problem, now)) snoozed.push({ ...problem, snooze });
    else open.push(problem);
  }
  return { open, snoozed };
}

function holds(snooze: Snooze, problem: Problem, now: Date): boolean {
  if (snooze.until <= now || SEVERITY[problem.tone] > SEVERITY[snooze.tone]) return false;
  if (!snooze.endsOnChange) return true;
  return problem.what === snooze.what && Number(problem.since ?? 0) === Number(snooze.since ?? 0);
}
