import type { z } from "zod";
import type { Content } from "../http/call.ts";
import type { Deprecation } from "./deprecation.ts";
import type { Memory } from "../published/memory.ts";
import { readParams } from "./params.ts";
import type { PlanOfTables } from "./select.ts";

/** One operation of the API, in its own file; `Parts` are the parts of the memory that it reads. */
export interface Operation<Parts extends keyof Memory = keyof Memory> {
  path: string;
  /** Its name in metering. */
  endpoint: string;
  params: z.ZodObject;
  /** Set if it is deprecated; then every response of its path has the headers. */
  deprecated?: Deprecation;
  /** @throws ApiError if the parameters or the plan do not allow it. */
  compose(query: URLSearchParams, asked: Asked<Parts>): Content;
}

/** What a response is made from, besides its parameters. */
export interface Asked<Parts extends keyof Memory> {
  memory: Pick<Memory, Parts>;
  plan: PlanOfTables;
}

/** Makes an operation from its path, its parameters and its handler, which gets parsed parameters. */
export function operation<Shape extends z.ZodRawShape, Parts extends keyof Memory>({
  path,
  params,
  compose,
}: {
  path: string;
  params: z.ZodObject<Shape>;
  compose: (params: z.infer<z.ZodObject<Shape>>, asked: Asked<Parts>) => Content;
}): Operation<Parts> {
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
