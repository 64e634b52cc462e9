import { z } from "zod";
import { adapter, type FeedRequest } from "../contract.ts";
import { describe } from "../reading/excerpt.ts";
import { namedOptions } from "../settings/feed-options.ts";
import { acceptedTimes, readId, readRound, refused } from "../reading/read-round.ts";
import { foundInstead, decodeJson } from "../reading/read-text.ts";
import { requestedId, firstRoundId, nextId } from "../reading/round-page.ts";
import { WireNumber } from "../reading/wire-json.ts";

/** An instant crash, as the house writes it. */
const INSTANT = [0];

const options = z.strictObject({
  first_round_id: firstRoundId,
  ...namedOptions({ order: "auto", scale: 0.01, instant: INSTANT }),
});

/** Hundredths are whole: 279.56 means another unit; read as hundredths it would be a plausible wrong number. */
const crash = z.union([z.int(), z.string().regex(/^\d+$/)]);

/**
 * ethcrash.io, one JSON document a game. Another site than ethercrash.io, with another seed.
 *
 * Seen in a public client of 2018: the address, and `game_crash` as whole hundredths with 0 for an instant crash; it
 * waited a second between two games and 20 s after an error. Not confirmed: the response for a game that was not played
 * yet (404 is expected), any other field, and that the site still responds.
 */
export default adapter<z.infer<typeof options>>({
  name: "ethcrash-io",
  options,
  instant: INSTANT,
  rounds: "page",

  poll: (feed, known) => requestFor(nextId(feed, known)),

  history: (_, { beforeId }) => requestFor(BigInt(beforeId) - 1n),

  read(feed, body, now, readOptions = {}) {
    const expected = { what: "JSON with `game_crash`", advice: "wait if the house is down, else check base_url" };
    const id = requestedId(readOptions.path, /^\/game\/(\d+)\.json$/);
    if (id === null)
      return { ok: false, reason: "expected a response of /game/{id}.json, found one of another address" };
    const parsed = decodeJson(body, expected);
    if (!parsed.ok) return parsed;
    const game = z.looseObject({ game_crash: z.unknown() }).safeParse(parsed.value);
    if (!game.success || game.data.game_crash === undefined) {
      return { ok: false, reason: foundInstead(expected, describe(parsed.value), body.toString()) };
    }
    const { game_crash: value, id: stated, game_id: alsoStated } = game.data;
    const other = [stated, alsoStated].find((one) => one !== undefined && one !== null && !isId(one, id));
    if (other !== undefined) {
      return { ok: false, reason: `expected game ${id}, found a document of game ${describe(other)}; check base_url` };
    }
    if (value !== null && (value instanceof WireNumber || !crash.safeParse(value).success)) {
      const reason = `expected whole hundredths such as 27956 as \`game_crash\`, found ${describe(value)}`;
      return { ok: true, items: [refused({ code: "not_a_number", reason }, id, parsed.value)] };
    }
    return { ok: true, items: [readRound({ id, multiplier: value }, parsed.value, feed, acceptedTimes(now))] };
  },
});

function isId(value: unknown, id: string): boolean {
  const read = readId(value);
  return read.ok && read.value === id;
}

function requestFor(id: bigint): FeedRequest {
  return { method: "GET", path: `/game/${id}.json`, headers: { accept: "application/json" }, roundId: String(id) };
}
