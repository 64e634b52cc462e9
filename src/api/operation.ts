import type { z } from "zod";
import type { Allowance } from "../callers/caller-store.ts";
import type { Content } from "../http/call.ts";
import type { Deprecation } from "./deprecation.ts";
import type { Memory } from "../published/memory.ts";
import { readParams } from "./params.ts";

/** One operation of the API, in its own file. */
export interface Operation {
  path: string;
  /** Its name in metering. */
  endpoint: string;
  params: z.ZodObject;
  /** Set if it is deprecated; then every response of its path has the headers. */
  deprecated?: Deprecation;
  /** @throws ApiError if the parameters or the plan do not allow it. */
  compose(query: URLSearchParams, asked: { memory: Memory; plan: Allowance }): Content;
}

/** Makes an operation from its path, its parameters and its handler, which gets parsed parameters. */
export function operation<Shape extends z.ZodRawShape>({
  path,
  params,
  compose,
}: {
  path: string;
  params: z.ZodObject<Shape>;
  compose: (params: z.infer<z.ZodObject<Shape>>, asked: { memory: Memory; plan: Allowance }) => Content;
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
    compose: (query, asked) => compose(read(query), asked),
  };
}
