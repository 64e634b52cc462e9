import { z } from "zod";
import { adapter, type FeedRequest, type HouseItem } from "../contract.ts";
import { namedOptions } from "../settings/feed-options.ts";
import { acceptedTimes, readRound } from "../reading/read-round.ts";
import { foundInstead, decodeText } from "../reading/read-text.ts";
import { requestedId, firstRoundId, nextId, visibleText } from "../reading/round-page.ts";

/** An instant crash, as the house writes it. */
const INSTANT = [0];

const options = z.strictObject({
  /** The first game to poll; by default the newest games that the page /play lists. */
  first_round_id: firstRoundId.optional(),
  ...namedOptions({ order: "auto", instant: INSTANT }),
});

const LISTING = "/play";
const ACCEPT = { accept: "text/html" };
/** `Game 7217785 | Crashed @67.25x` */
const TITLE = /\bGame\s{1,4}(\d{1,18})\s{0,4}\|\s{0,4}Crashed\s{0,4}@\s{0,4}([\d.,]{1,40})\s?x/i;
/** `5 days ago on Fri May 03 2024 23:56:01 GMT+0200 (…)`: in the reader's zone, which is included. */
const TIME = /\bago\s{1,4}on\s{1,4}([A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d GMT[+-]\d{4}|\S.{0,39})/;
const LINK = /<a\b([^<>]{1,500})>([^<>]{0,60})/gi;
const MOST_LINKS = 200;

/**
 * ethercrash.io, one HTML page a game.
 *
 * Seen in public clients: the address, a title such as `Game 7217785 | Crashed @67.25x` with commas in thousands and
 * `0.00` for an instant crash, a time with its zone; and on /play a history of links `a.games-log-…` to the games with
 * their results. Checked: 1,180 results against the chain of its game numbers. Not confirmed: the response for a game that
 * was not played yet (404 is expected), and that /play lists anything to a client without scripts: set `first_round_id`
 * if it does not.
 *
 * Both pages are read with bounded patterns and no HTML parser: only one line and one kind of link are needed. Clients
 * wait 2 to 10 s between two pages.
 */
export default adapter<z.infer<typeof options>>({
  name: "ethercrash",
  options,
  instant: INSTANT,
  rounds: "page",

  poll({ first_round_id }, known) {
    const isFirst = known.newest === null && first_round_id === undefined;
    if (isFirst) return { method: "GET", path: LISTING, headers: ACCEPT };
    return requestFor(nextId({ first_round_id: first_round_id ?? "1" }, known));
  },

  history: (_, { beforeId }) => requestFor(BigInt(beforeId) - 1n),

  read(feed, body, now, readOptions = {}) {
    const isListing = readOptions.path === LISTING;
    const expected = isListing
      ? { what: "a page with links to games and their results", advice: "set feed.first_round_id to a recent game" }
      : {
          what: "a page with a title such as `Game 7217785 | Crashed @67.25x`",
          advice: "wait if the house is down; if a browser shows it, the page changed",
        };
    const html = decodeText(body, expected);
    if (!html.ok) return html;
    const accepted = acceptedTimes(now, readOptions);
    if (isListing) {
      const items = listedGames(html.value).map((game) => readRound(game, game, feed, accepted));
      return items.length > 0
        ? { ok: true, items }
        : { ok: false, reason: foundInstead(expected, "none there", visibleText(html.value)) };
    }
    const id = requestedId(readOptions.path, /^\/game\/(\d+)$/);
    if (id === null) return { ok: false, reason: "expected a page of /game/{id}, found one of another address" };
    const text = visibleText(html.value);
    const title = TITLE.exec(text);
    if (title === null) return { ok: false, reason: foundInstead(expected, "none there", text) };
    const [, stated = "", result = ""] = title;
    if (stated !== id) {
      return { ok: false, reason: `expected the page of game ${id}, found that of game ${stated}; check base_url` };
    }
    const raw = { title: title[0], time: TIME.exec(text)?.[1] ?? null };
    const round: HouseItem = readRound({ id, multiplier: result, occurredAt: raw.time }, raw, feed, accepted);
    return { ok: true, items: [round] };
  },
});

function requestFor(id: bigint): FeedRequest {
  return { method: "GET", path: `/game/${id}`, headers: ACCEPT, roundId: String(id) };
}

/** The games of the history on /play, each with its displayed result. */
function listedGames(html: string): { id: string; multiplier: string }[] {
  return [...html.matchAll(LINK)]
    .flatMap(([, attributes = "", text = ""]) => {
      const id = /\bhref=["']\/game\/(\d{1,18})["']/i.exec(attributes)?.[1];
      const isHistory = /\bclass=["'][^"']{0,200}games-log-/i.test(attributes);
      return id === undefined || !isHistory ? [] : [{ id, multiplier: text.trim() }];
    })
    .slice(0, MOST_LINKS);
}
