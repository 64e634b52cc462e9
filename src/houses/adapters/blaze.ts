import { z } from "zod";
import { adapter } from "../contract.ts";
import { namedOptions } from "../settings/feed-options.ts";
import { readList, wire, type ListShape } from "../reading/read-list.ts";

/** An instant crash, as the house writes it. */
const INSTANT = ["0"];

const options = z.strictObject({
  /** `classic`: /crash_games below the base; `originals`: /singleplayer-originals/originals/crash_games, the newer one. */
  api: z.enum(["classic", "originals"]).default("classic"),
  ...namedOptions({ order: "newest_first", instant: INSTANT }),
});

const ROOTS = { classic: "/crash_games", originals: "/singleplayer-originals/originals/crash_games" } as const;
/** The number in the newer paths; what it selects is not known. */
const ORIGINALS_GAME = "4";
/** The newer history requires a span; a gap is seldom older than a few days. */
const SPAN_MS = 30 * 86_400_000;
const ACCEPT = { accept: "application/json" };

const statuses = z.enum(["complete", "waiting", "graphing"], {
  error: "expected complete, waiting or graphing",
});

const shape: ListShape<{
  id: z.infer<typeof wire>;
  crash_point?: z.infer<typeof wire> | null | undefined;
  status?: z.infer<typeof statuses> | null | undefined;
  created_at?: z.infer<typeof wire> | null | undefined;
  server_seed?: z.infer<typeof wire> | null | undefined;
}> = {
  what: "Blaze's newest crash games",
  response: z.union([
    z.array(z.unknown()),
    z.looseObject({ records: z.array(z.unknown()) }).transform((a) => a.records),
  ]),
  item: z
    .looseObject({
      id: wire,
      status: statuses.nullish(),
      crash_point: wire.nullish(),
      created_at: wire.nullish(),
      server_seed: wire.nullish(),
    })
    .refine(({ status, crash_point }) => isUnfinished(status) || (crash_point ?? null) !== null, {
      error: "expected a text or a number",
      path: ["crash_point"],
    }),
  kinds: { id: "id", crash_point: "multiplier", created_at: "time", server_seed: "hash" },
  round: (item) =>
    isUnfinished(item.status)
      ? null
      : { id: item.id, multiplier: item.crash_point, occurredAt: item.created_at, hash: item.server_seed },
};

function isUnfinished(status: string | null | undefined): boolean {
  return status === "waiting" || status === "graphing";
}

/**
 * Blaze crash, over HTTP.
 *
 * Seen in several public clients: the paths of both kinds, a bare list or one under `records`, newest first, the result
 * as a text with `"0"` for an instant crash, `status` `complete` once a round is over, `server_seed` as its hash in the
 * history. Checked against the chain: results of 2022 and 2023. Not confirmed: how far the history goes back, whether
 * the newer history needs its dates, whether the newest list names hashes, and its rate limit.
 * base_url holds what differs between mirrors: `https://blaze.com/api`, `https://blaze.bet.br/api`.
 */
export default adapter<z.infer<typeof options>>({
  name: "blaze",
  options,
  instant: INSTANT,
  paging: "number",
  hasHash: () => true,

  poll: ({ api }) => ({
    method: "GET",
    path: `${ROOTS[api]}/recent${api === "originals" ? `/${ORIGINALS_GAME}` : ""}`,
    headers: ACCEPT,
  }),

  history({ api }, { page, now }) {
    const path = `${ROOTS[api]}/recent/history`;
    if (api === "classic") return { method: "GET", path: `${path}?page=${page + 1}`, headers: ACCEPT };
    const startDate = encodeURIComponent(new Date(Date.parse(now) - SPAN_MS).toISOString());
    const endDate = encodeURIComponent(new Date(Date.parse(now)).toISOString());
    const query = `page=${page + 1}&startDate=${startDate}&endDate=${endDate}`;
    return { method: "GET", path: `${path}/${ORIGINALS_GAME}?${query}`, headers: ACCEPT };
  },

  read: (feed, body, now, readOptions) => readList(shape, feed, body, now, readOptions),
});
