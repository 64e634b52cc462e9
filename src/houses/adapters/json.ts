import jmespath from "jmespath";
import { z } from "zod";
import { adapter, type HouseItem } from "../contract.ts";
import { describe, excerpt } from "../reading/excerpt.ts";
import { acceptedTimes, readId, readRound, refused, type AcceptedTimes } from "../reading/read-round.ts";
import { foundInstead, decodeJson } from "../reading/read-text.ts";

/** Responses with more items are refused: a page has 50 to 100, and the work of one poll must stay bounded. */
const MOST_ITEMS = 5_000;

const ACCEPT = { accept: "application/json" };
const FIELD_PATH = /^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*$/;

const expression = z.string().min(1).max(500).refine(isJmesPath, { error: "expected a JMESPath expression" });
const path = z
  .string()
  .max(1000)
  .regex(/^\/[^\s]*$/, { error: "expected a path that begins with /" });

/** The paths of the list and the fields, and their meaning. */
const options = z.strictObject({
  path,
  items: expression,
  round_id: expression,
  multiplier: expression,
  scale: z.number().positive().max(1).default(1),
  instant: z
    .array(z.union([z.string().max(32), z.number()]))
    .max(10)
    .default([]),
  occurred_at: expression.optional(),
  hash: expression.optional(),
  history: path
    .refine((text) => text.includes("{id}"), {
      error: "expected {id}, the round before which older ones are requested",
    })
    .optional(),
  order: z.enum(["auto", "newest_first", "newest_last"]).default("auto"),
});

/** The options of the generic adapter. */
export type JsonFeed = z.infer<typeof options>;

/**
 * The generic adapter: any house that returns JSON with a list of rounds, at configurable paths.
 *
 * Nothing from the house is trusted: an unreadable response yields a reason, an invalid item a refusal with its raw form;
 * neither throws. Items keep the order of the response; repeats are included.
 */
export default adapter<JsonFeed>({
  name: "json",
  options,
  hasHash: (feed) => feed.hash !== undefined,

  poll: (feed) => ({ method: "GET", path: feed.path, headers: ACCEPT }),

  history: (feed, { beforeId, limit }) =>
    feed.history === undefined
      ? null
      : {
          method: "GET",
          path: feed.history
            .replaceAll("{id}", encodeURIComponent(beforeId))
            .replaceAll("{limit}", encodeURIComponent(limit)),
          headers: ACCEPT,
        },

  part(feed, body) {
    const parsed = decodeJson(body, expectedOf(feed));
    const list = parsed.ok ? search(parsed.value, feed.items) : parsed;
    return list.ok && Array.isArray(list.value) ? JSON.stringify(list.value) : null;
  },

  read(feed, body, now, readOptions) {
    const expected = expectedOf(feed);
    const parsed = decodeJson(body, expected);
    if (!parsed.ok) return parsed;
    const unreadable = (found: string) =>
      ({ ok: false, reason: foundInstead(expected, found, body.toString()) }) as const;
    const list = search(parsed.value, feed.items);
    if (!list.ok) return unreadable(`JSON on which \`${feed.items}\` fails (${list.reason})`);
    if (!Array.isArray(list.value)) return unreadable(`${describe(list.value)} there`);
    if (list.value.length > MOST_ITEMS) {
      return {
        ok: false,
        reason: `expected at most ${MOST_ITEMS} items, found ${list.value.length}; request fewer in feed.path`,
      };
    }
    const accepted = acceptedTimes(now, readOptions);
    return { ok: true, items: list.value.map((item: unknown) => readItem(feed, item, accepted)) };
  },
});

function expectedOf({ items }: JsonFeed): { what: string; advice: string } {
  const advice = "check feed.path and feed.items, or wait if the house is down";
  return { what: `JSON with a list at \`${items}\``, advice };
}

function readItem(feed: JsonFeed, item: unknown, accepted: AcceptedTimes): HouseItem {
  if (item === null || typeof item !== "object") {
    const reason = `expected an object or a list for each round, found ${describe(item)}`;
    return refused({ code: "not_an_item", reason }, null, item);
  }
  const id = search(item, feed.round_id);
  if (!id.ok) return badExpression("bad_id", feed.round_id, id.reason, null, item);
  const readable = readId(id.value);
  const roundId = readable.ok ? readable.value : null;
  const multiplier = search(item, feed.multiplier);
  if (!multiplier.ok) return badExpression("not_a_number", feed.multiplier, multiplier.reason, roundId, item);
  const occurredAt = optional(feed.occurred_at, item);
  if (!occurredAt.ok) return badExpression("absurd_time", feed.occurred_at ?? "", occurredAt.reason, roundId, item);
  const hash = optional(feed.hash, item);
  if (!hash.ok) return badExpression("bad_hash", feed.hash ?? "", hash.reason, roundId, item);
  const fields = { id: id.value, multiplier: multiplier.value, occurredAt: occurredAt.value, hash: hash.value };
  return readRound(fields, item, feed, accepted);
}

function badExpression(
  code: "bad_id" | "not_a_number" | "absurd_time" | "bad_hash",
  expressionText: string,
  why: string,
  roundId: string | null,
  item: unknown,
): HouseItem {
  return refused({ code, reason: `\`${expressionText}\` fails on this item: ${why}` }, roundId, item);
}

function optional(expressionText: string | undefined, item: object): Found {
  return expressionText === undefined ? { ok: true, value: null } : search(item, expressionText);
}

type Found = { ok: true; value: unknown } | { ok: false; reason: string };

/**
 * A JMESPath search that never throws. Plain paths, nearly all there are, are evaluated here: the library would parse the
 * expression again for each of thousands of items. They see no inherited properties; in the library `@.constructor` does.
 */
function search(value: unknown, expressionText: string): Found {
  const fields = fieldsOf(expressionText);
  if (fields !== null) return { ok: true, value: fields.reduce<unknown>(ownField, value) };
  try {
    const found: unknown = jmespath.search(value, expressionText);
    return { ok: true, value: found ?? null };
  } catch (error) {
    return { ok: false, reason: excerpt(error instanceof Error ? error.message : String(error)) };
  }
}

/** The names of a plain path; null for any other expression. */
function fieldsOf(expressionText: string): readonly string[] | null {
  const known = paths.get(expressionText);
  if (known !== undefined) return known;
  const fields = FIELD_PATH.test(expressionText) ? expressionText.split(".") : null;
  if (paths.size >= MOST_PATHS) paths.clear();
  paths.set(expressionText, fields);
  return fields;
}

const paths = new Map<string, readonly string[] | null>();
const MOST_PATHS = 10_000;

function ownField(value: unknown, name: string): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value) || !Object.hasOwn(value, name)) return null;
  const own: unknown = (value as Record<string, unknown>)[name];
  return own ?? null;
}

function isJmesPath(text: string): boolean {
  try {
    jmespath.search(null, text);
    return true;
  } catch {
    return false; // the parser throws on anything it cannot read; evaluating on null never does
  }
}
