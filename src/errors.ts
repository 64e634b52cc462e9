/**
 * The kinds of failure.
 *
 * A job fails in one of three ways: any error is retried after a back-off, a PermanentError is not retried and stays in
 * the list of failed runs, a ThrottledError delays the run without spending an attempt. A UsageError is a mistake of the
 * person who started a command (wrong configuration, wrong arguments): the command lists every problem and exits with 2.
 */

/** The work can never succeed; a retry would only repeat the failure. */
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

/** One problem of a file or an argument: its place, what was expected and what was found. */
export interface Problem {
  path: string;
  message: string;
}

/** A mistake of the person who started the command; `problems` are listed one per line and the exit code is 2. */
export class UsageError extends Error {
  override name = "UsageError";
  readonly problems: readonly Problem[];

  constructor(message: string, problems: readonly Problem[] = []) {
    super([message, ...problems.map(({ path, message: what }) => `  ${path}: ${what}`)].join("\n"));
    this.problems = problems;
  }
}

/** Anything thrown as an Error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** The text of anything thrown, with its causes, on one line. */
export function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const own = thrown.message || ("code" in thrown ? String(thrown.code) : thrown.name);
  return thrown.cause === undefined ? own : `${own}: ${reasonOf(thrown.cause)}`;
}

/** The stack of anything thrown, followed by those of its causes. */
export function stackOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const own = thrown.stack ?? String(thrown);
  return thrown.cause === undefined ? own : `${own}\ncaused by: ${stackOf(thrown.cause)}`;
}

/** The system's code of anything thrown, such as ENOENT; empty if it has none. */
export function codeOf(thrown: unknown): string {
  return thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
}
