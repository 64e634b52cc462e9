import type { z } from "zod";
import type { Allowance, Caller } from "../callers/caller-store.ts";
import { checkKey } from "../callers/key.ts";
import { ApiError } from "./errors.ts";
import type { KnownCallers } from "./known-callers.ts";
import type { Memory } from "./memory.ts";
import { readParams } from "./params.ts";

/** What an operation answers with: `json` is made only where it is sent. */
export interface Answer {
  etag: string;
  json(): string;
}

/** Something callers can ask for: one file each. */
export interface Operation {
  path: string;
  /** What the meter calls it. */
  endpoint: string;
  /** @throws ApiError where the parameters or the plan do not allow it. */
  answer(query: URLSearchParams, asked: { memory: Memory; plan: Allowance }): Answer;
}

/** Makes an operation of its path, its parameters and how it is answered once they are read. */
export function operation<Shape extends z.ZodRawShape>({
  path,
  params,
  answer,
}: {
  path: string;
  params: z.ZodObject<Shape>;
  answer: (params: z.infer<z.ZodObject<Shape>>, asked: { memory: Memory; plan: Allowance }) => Answer;
}): Operation {
  return {
    path,
    endpoint: path.slice(path.lastIndexOf("/") + 1),
    answer: (query, asked) => answer(readParams(params, query), asked),
  };
}

/**
 * Who calls: the key by its form, then by what is known of it.
 * @param header of X-Api-Key; Node joins several with a comma, which no key has
 * @throws ApiError with a 401, or a 503 where only the database could tell and it does not answer.
 */
export async function authenticate(header: string | undefined, callers: KnownCallers): Promise<Caller> {
  if (header === undefined || header === "") throw new ApiError("missing_api_key");
  if (!checkKey(header)) throw new ApiError("invalid_api_key");
  const caller = await callers.of(header);
  if (caller === null) throw new ApiError("invalid_api_key");
  return caller;
}

/** The plan of a caller whose key, account and plan are good. @throws ApiError with a 401, 402 or 403 otherwise. */
export function requireStanding({ standing, plan }: Caller): Allowance {
  if (standing !== "good") throw new ApiError(standing);
  if (plan === null) throw new Error("expected a caller of good standing to have a plan");
  return plan;
}
