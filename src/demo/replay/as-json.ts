import { json } from "../response.ts";
import { wholeIn, type PublishedRound, type WireFormat } from "./wire.ts";

/** The most items the generic adapter takes in one response. */
const LONGEST_PAGE = 5_000;
const USUAL_PAGE = 50;

/** Not a house's format but ours, for games that no adapter is named after: what the generic adapter reads without ado. */
export const asJson: WireFormat = {
  name: "json",
  palette: "ours",
  usualMs: 25_000,
  serves: [
    `GET /rounds?limit=${USUAL_PAGE}   newest first, at most ${LONGEST_PAGE}`,
    "GET /rounds?before={id}&limit={limit}",
  ],
  feed: [
    "path: /rounds?limit=50",
    "items: rounds",
    "round_id: id",
    "multiplier: multiplier",
    "instant: [0]",
    "occurred_at: created_at",
    "hash: hash",
    "history: /rounds?before={id}&limit={limit}",
  ],
  respond({ url, method }, published) {
    if (url.pathname !== "/rounds") return null;
    if (method !== "GET" && method !== "HEAD") {
      return json({ error: `expected GET or HEAD, got ${method}` }, 405, { allow: "GET, HEAD" });
    }
    const unknown = [...url.searchParams.keys()].find((name) => name !== "before" && name !== "limit");
    if (unknown !== undefined) return json({ error: `expected only before and limit, got ${unknown}` }, 400);
    const limit = wholeIn(url.searchParams.get("limit") ?? USUAL_PAGE, 1, LONGEST_PAGE);
    if (limit === null) return json({ error: `expected limit to be a whole number from 1 to ${LONGEST_PAGE}` }, 400);
    const before = url.searchParams.get("before");
    const rounds = before === null ? published.newest(limit) : published.before(before, limit);
    if (rounds === null) return json({ error: `no round ${before} has been published yet` }, 404);
    return { ...json(null), body: `{"rounds":[${rounds.map(itemOf).join(",")}]}` };
  },
};

/** The multiplier is sent with the digits of the file, which a JavaScript number would not keep. */
function itemOf({ id, multiplier, occurredMs, at, hash }: PublishedRound): string {
  const given = {
    ...(occurredMs === null ? {} : { created_at: at.toISOString() }),
    ...(hash === null ? {} : { hash }),
  };
  const others = JSON.stringify(given).slice(1);
  return `{"id":${JSON.stringify(id)},"multiplier":${multiplier ?? "null"}${others === "}" ? "" : ","}${others}`;
}
