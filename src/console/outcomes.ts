import { FAILURES } from "../http/errors.ts";

/** The outcome of a call for people: status and meaning. */
export interface Outcome {
  code: string;
  status: number | null;
  means: string;
  isRefused: boolean;
}

/** The display of a recorded outcome: `ok`, `not_modified` or an error code. */
export function outcomeOf(outcome: string): Outcome {
  if (outcome === "ok") return { code: "ok", status: 200, means: "Answered.", isRefused: false };
  if (outcome === "not_modified") {
    return { code: "not_modified", status: 304, means: "Unchanged since your last call; free.", isRefused: false };
  }
  const failure = Object.hasOwn(FAILURES, outcome) ? FAILURES[outcome as keyof typeof FAILURES] : null;
  return { code: outcome, status: failure?.status ?? null, means: failure?.means ?? "", isRefused: true };
}
