import { z } from "zod";
import { adapter } from "../contract.ts";
import { describe, excerpt } from "../reading/excerpt.ts";
import { namedOptions } from "../settings/feed-options.ts";
import { readList, wire, type ListShape } from "../reading/read-list.ts";
import { parseWireJson } from "../reading/wire-json.ts";

const options = z.strictObject({
  /** The house's name of the game in its addresses. */
  game_url: z
    .string()
    .regex(/^[a-z0-9_-]{1,64}$/, { error: "expected the name of a game as in the address, such as crash" })
    .default("crash"),
  ...namedOptions({ order: "newest_first" }),
});

const PAGE = 50;
const PATH = "/api/game/bet/multi/history";
const HEADERS = { accept: "application/json", "content-type": "application/json" };

/** JSON text inside JSON. */
const detail = z
  .string({ error: "expected JSON as text" })
  .transform((text, context) => {
    const parsed = parseWireJson(text);
    if (parsed.ok) return parsed.value;
    context.addIssue({ code: "custom", message: `expected JSON as text (it is ${parsed.reason})`, input: text });
    return z.NEVER;
  })
  .pipe(
    z.looseObject(
      { rate: wire, hash: wire.nullish(), endTime: wire.nullish(), beginTime: wire.nullish() },
      { error: "expected an object" },
    ),
  );
const item = z.looseObject({ gameId: wire, gameDetail: detail });

const shape: ListShape<z.infer<typeof item>> = {
  what: "BC.Game's newest games",
  response: z.looseObject({ data: z.looseObject({ list: z.array(z.unknown()) }) }).transform(({ data }) => data.list),
  item,
  kinds: { gameId: "id", rate: "multiplier", endTime: "time", hash: "hash" },
  round: ({ gameId, gameDetail: { rate, hash, endTime } }) => ({
    id: gameId,
    multiplier: rate,
    occurredAt: endTime,
    hash,
  }),
  houseError,
};

/** A code other than 0 is an error, with status 200. */
function houseError(response: unknown): string | null {
  const found = z.looseObject({ code: z.unknown(), msg: z.unknown() }).safeParse(response);
  if (!found.success || found.data.code === 0 || found.data.code === undefined) return null;
  const { code, msg } = found.data;
  const quoted = typeof msg === "string" && msg !== "" ? ` "${excerpt(msg, 200)}"` : "";
  return `the house refused the request with code ${describe(code)}${quoted}; expected code 0: check feed.game_url, and whether it requires a session in headers`;
}

/**
 * BC.Game crash, and its sister hosts, over HTTP.
 *
 * Seen in public clients: the request, the response newest first, `code` other than 0 for an error with status 200, a game
 * as JSON text inside JSON, its result as a text or a number (`"20310.6"` has one decimal), times in milliseconds since
 * 1970 that may be missing. Checked: 107,742 published results against the chain of 2022. Not confirmed: how far back its
 * pages go (one client reads 100 rounds, another 20 pages of 50; here until a page is empty), which chain is in use today,
 * and whether plain requests pass the browser check in front of it.
 */
export default adapter<z.infer<typeof options>>({
  name: "bcgame",
  options,
  paging: "number",
  hasHash: () => true,

  poll: (feed) => ask(feed.game_url, 1),

  history: (feed, { page }) => ask(feed.game_url, page + 1),

  read: (feed, body, now, readOptions) => readList(shape, feed, body, now, readOptions),
});

function ask(gameUrl: string, page: number) {
  const body = JSON.stringify({ gameUrl, page, pageSize: PAGE });
  return { method: "POST", path: PATH, headers: HEADERS, body } as const;
}
