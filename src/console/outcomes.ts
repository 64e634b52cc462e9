import { FAILURES } from "../http/errors.ts";

/** How a call ended, for people: its status and its meaning. */
export interface Outcome {
  code: string;
  status: number | null;
  means: string;
  isRefused: boolean;
}

/** What is shown of an outcome as it is recorded: `ok`, `not_modified`, or the code of an error. */
export function outcomeOf(outcome: string): Outcome {
  if (outcome === "ok") return { code: "ok", status: 200, means: "Answered.", isRefused: false };
  if (outcome === "not_modified") {
    return { code: "not_modified", status: 304, means: "Unchanged since your last call; free.", isRefused: false };
  }
  const failure = Object.hasOwn(FAILURES, outcome) ? FAILURES[outcome as keyof typeof FAILURES] : null;
  return { code: outcome, status: failure?.status ?? null, means: failure?.means ?? "", isRefused: true };
}
