import type { z } from "zod";
import type { Allowance } from "../callers/caller-store.ts";
import type { Answer } from "../http/call.ts";
import type { Deprecation } from "./deprecation.ts";
import type { Memory } from "../published/memory.ts";
import { readParams } from "./params.ts";

/** Something callers can ask for: one file each. */
export interface Operation {
  path: string;
  /** What the meter calls it. */
  endpoint: string;
  params: z.ZodObject;
  /** Set where it is going away: every answer of its path then says so. */
  deprecated?: Deprecation;
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
  const known = new WeakMap<URLSearchParams, z.infer<z.ZodObject<Shape>>>(); // see readUrl
  const read = (query: URLSearchParams) => {
    const found = known.get(query);
    if (found !== undefined) return found;
    const made = readParams(params, query);
    known.set(query, made);
    return made;
  };
  return {
    path,
    endpoint: path.slice(path.lastIndexOf("/") + 1),
    params,
    answer: (query, asked) => answer(read(query), asked),
  };
}
