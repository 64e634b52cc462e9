import { z } from "zod";
import { adapter } from "../contract.ts";
import { namedOptions } from "../settings/feed-options.ts";
import { readList, wire, type ListShape } from "../reading/read-list.ts";

const options = z.strictObject(namedOptions({ order: "newest_first" }));

const item = z.looseObject({ id: wire, crashPoint: wire });

const shape: ListShape<z.infer<typeof item>> = {
  what: "a list of Roobet's newest crash games",
  response: z.array(z.unknown()),
  item,
  kinds: { id: "id", crashPoint: "multiplier" },
  round: ({ id, crashPoint }) => ({ id, multiplier: crashPoint }),
};

/**
 * Roobet crash, over HTTP.
 *
 * Seen in public scripts of 2020 and 2021: the address, a bare list newest first, `id` and `crashPoint`. Checked: 1,646
 * results of 2020 against the chain, with divisor 25. Not confirmed: that the address still responds, what other fields
 * an item has (so neither time nor hash is read), and any way to older rounds. An instant crash is shown as 1.00.
 */
export default adapter<z.infer<typeof options>>({
  name: "roobet",
  options,

  poll: () => ({ method: "GET", path: "/crash/recentNumbers", headers: { accept: "application/json" } }),

  history: () => null,

  read: (feed, body, now, readOptions) => readList(shape, feed, body, now, readOptions),
});
