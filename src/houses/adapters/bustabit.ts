import { z } from "zod";
import { adapter, type FeedRequest, type HouseRound } from "../contract.ts";
import { namedOptions } from "../settings/feed-options.ts";
import { parseMultiplier } from "../reading/multiplier.ts";
import { acceptedTimes, readRound, refused } from "../reading/read-round.ts";
import { foundInstead, decodeText } from "../reading/read-text.ts";
import { requestedId, firstRoundId, nextId, visibleText } from "../reading/round-page.ts";

const options = z.strictObject({ first_round_id: firstRoundId, ...namedOptions({ order: "auto" }) });

/** Directly before the result. */
const LABEL = /\bbusted\s{0,4}at\b/i;
const LABELLED = /\bbusted\s{0,4}at\s{0,4}:?\s{0,4}(\d[\d,.]{0,40} ?x)(?!\w)/i;
/** `185.04x`, `1x`, `12,345x`; not the rest of a number that is split over two elements. */
const RESULT = /(?<![\w.,-]|[.,]\s)((?:[1-9][\d,.]{0,40}|0(?:[.,][\d.,]{0,40})?)x)(?!\w)/g;
/** A page lists the cashouts of its players: a few hundred. */
const MOST_RESULTS = 5_000;
const GAME = /\bgame\s{0,4}#?:?\s{0,4}(\d{1,18})\b/gi;

/**
 * bustabit, one HTML page a game.
 *
 * Seen in a public client: the address, the result as text such as `185.04x` right after the text `Busted at:`, 404 for
 * a game that was not played yet. Checked against the chain: whole results have no decimals and thousands a comma; a
 * pattern that requires decimals loses exactly these, which are all instant crashes and all the highest results. Not
 * confirmed: that the page shows it to a client without scripts (that one had none). If the label is missing, the first
 * text of this form is used from a page that names its game, and refused if another on it is higher, since no player can
 * cash out above the result. The page has no confirmed place for a hash, so rounds are proven from a known later hash
 * and not one by one.
 *
 * The page is read with patterns and no HTML parser: only its text is known. Clients wait 0.5 to 3 s between two pages.
 */
export default adapter<z.infer<typeof options>>({
  name: "bustabit",
  options,
  rounds: "page",

  poll: (feed, known) => requestFor(nextId(feed, known)),

  history: (_, { beforeId }) => requestFor(BigInt(beforeId) - 1n),

  read(feed, body, now, readOptions = {}) {
    const expected = {
      what: "a page with the result of a game such as 185.04x",
      advice: "wait if the house is down; if a browser shows the result, the page changed or is built by scripts",
    };
    const id = requestedId(readOptions.path, /^\/game\/(\d+)$/);
    if (id === null) return { ok: false, reason: "expected a page of /game/{id}, found one of another address" };
    const html = decodeText(body, expected);
    if (!html.ok) return html;
    const text = visibleText(html.value);
    const stated = [...text.matchAll(GAME)].map(([, number]) => number);
    if (stated.length > 0 && !stated.includes(id)) {
      return { ok: false, reason: `expected the page of game ${id}, found that of game ${stated[0]}; check base_url` };
    }
    const isLabelled = LABEL.test(text);
    if (!isLabelled && !namesGame(text, id)) {
      return { ok: false, reason: foundInstead(expected, "one that does not name its game", text) };
    }
    const results = text
      .matchAll(RESULT)
      .map(([, result = ""]) => result)
      .take(MOST_RESULTS + 1)
      .toArray();
    if (results.length > MOST_RESULTS) {
      return { ok: false, reason: foundInstead(expected, `one with more than ${MOST_RESULTS} results`, text) };
    }
    const result = isLabelled ? LABELLED.exec(text)?.[1] : results[0];
    if (result === undefined) return { ok: false, reason: foundInstead(expected, "none there", text) };
    const raw = { game: id, results: isLabelled ? [result] : results.slice(0, 50) };
    const round = readRound({ id, multiplier: result }, raw, feed, acceptedTimes(now));
    const higher = isLabelled || !round.ok ? undefined : results.find((one) => isHigher(one, round.round, feed));
    if (higher === undefined) return { ok: true, items: [round] };
    const reason = `expected the result ${result} to be the highest of the page, found ${higher} too; the page changed its order`;
    return { ok: true, items: [refused({ code: "impossible_multiplier", reason }, id, raw)] };
  },
});

function namesGame(text: string, id: string): boolean {
  return text.matchAll(/\d{1,30}/g).some(([number]) => number === id);
}

function isHigher(result: string, { hundredths }: HouseRound, feed: z.infer<typeof options>): boolean {
  const other = parseMultiplier(result, feed);
  return other.ok && other.hundredths > hundredths;
}

function requestFor(id: bigint): FeedRequest {
  return { method: "GET", path: `/game/${id}`, headers: { accept: "text/html" }, roundId: String(id) };
}
