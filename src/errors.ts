/**
 * How things fail here.
 *
 * A job ends badly in three ways only: any throw is tried again with back-off, a PermanentError stops at once and
 * stays visible as failed, a ThrottledError waits and spends no attempt. A UsageError is a person's mistake (wrong
 * configuration, wrong arguments): it ends a command with exit code 2 and lists every problem at once.
 */

/** The work can never succeed as asked; trying again would only repeat the failure. */
export class PermanentError extends Error {
  override name = "PermanentError";
}

/** The work must wait `waitMs` (milliseconds) before it is tried again; no attempt is spent. */
export class ThrottledError extends Error {
  override name = "ThrottledError";
  readonly waitMs: number;

  constructor(message: string, waitMs: number) {
    super(message);
    this.waitMs = waitMs;
  }
}

/** One thing that is wrong with a file or an argument: where, and what was expected and came. */
export interface Problem {
  path: string;
  message: string;
}

/** A mistake of whoever started the command; `problems` are listed one a line and the exit code is 2. */
export class UsageError extends Error {
  override name = "UsageError";
  readonly problems: readonly Problem[];

  constructor(message: string, problems: readonly Problem[] = []) {
    super([message, ...problems.map(({ path, message: what }) => `  ${path}: ${what}`)].join("\n"));
    this.problems = problems;
  }
}

/** The text of anything thrown, with its causes, on one line. */
export function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const own = thrown.message || ("code" in thrown ? String(thrown.code) : thrown.name);
  return thrown.cause === undefined ? own : `${own}: ${reasonOf(thrown.cause)}`;
}

/** The system's code of anything thrown, such as ENOENT; empty where it has none. */
export function codeOf(thrown: unknown): string {
  return thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
}
