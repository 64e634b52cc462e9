import { z } from "zod";
import type { FeedOptions } from "../contract.ts";

/**
 * The options of every named adapter, for its own schema: the defaults are what its house is known to send, and an operator can
 * override them. `scale` belongs to the format and cannot be changed.
 */
export function namedOptions(known: Pick<FeedOptions, "order"> & Partial<FeedOptions>) {
  const { order, scale = 1, instant = [] } = known;
  return {
    scale: z.literal(scale, { error: "is fixed by the adapter; leave it out" }).default(scale),
    instant: z
      .array(z.union([z.string().max(32), z.number()]))
      .max(10)
      .default([...instant]),
    order: z.enum(["auto", "newest_first", "newest_last"]).default(order),
  };
}
