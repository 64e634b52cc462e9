import { z } from "zod";
import { adapter } from "../contract.ts";
import { namedOptions } from "../settings/feed-options.ts";
import { readList, wire, type ListShape } from "../reading/read-list.ts";

const options = z.strictObject(namedOptions({ order: "newest_first" }));

const item = z
  .looseObject({ hash: wire, topCoefficient: wire.nullish(), top_coefficient: wire.nullish() })
  .refine((one) => (one.topCoefficient ?? one.top_coefficient ?? null) !== null, {
    error: "expected a text or a number",
    path: ["topCoefficient"],
  });

const shape: ListShape<z.infer<typeof item>> = {
  what: "a list of Lucky Jet's newest rounds",
  response: z.array(z.unknown()),
  item,
  kinds: { hash: "id", topCoefficient: "multiplier", top_coefficient: "multiplier" },
  round: ({ hash, topCoefficient, top_coefficient }) => ({ id: hash, multiplier: topCoefficient ?? top_coefficient }),
};

/**
 * Lucky Jet (1win), over HTTP.
 *
 * Seen in public scripts: the address, a bare list newest first, `hash` and `topCoefficient` (an older script reads
 * `top_coefficient`), and that the headers `customer-id` and `session-id`, both UUIDs, are required. Not confirmed: a
 * field for the time, what the hash proves (so it only names the round), and any way to older rounds.
 */
export default adapter<z.infer<typeof options>>({
  name: "lucky-jet",
  options,
  needsHeaders: ["customer-id", "session-id"],

  poll: () => ({ method: "GET", path: "/history", headers: { accept: "application/json" } }),

  history: () => null,

  read: (feed, body, now, readOptions) => readList(shape, feed, body, now, readOptions),
});
