import jmespath from "jmespath";
import type { Adapter, HouseItem, ReadAnswer, RefusalCode } from "../contract.ts";
import { describe, excerpt } from "../excerpt.ts";
import { parseMultiplier } from "../multiplier.ts";
import { parseOccurredAt } from "../occurred-at.ts";
import type { FeedSettings } from "../settings.ts";
import { parseWireJson, WireNumber } from "../wire-json.ts";

/** More items are refused whole: a page is 50 to 100, and what one poll reads must stay bounded. */
const MOST_ITEMS = 5_000;
/** The longest id a round may have, as the table `rounds` takes it. */
const LONGEST_ID = 128;
/** Zones left out or wrong shift a clock by up to 14 hours, so a day either way is still believed. */
const AHEAD_BELIEVED_MS = 86_400_000;
/** A page of a slow game, or the first one after a house was away for days, lists rounds that are not of today. */
const BACK_BELIEVED_MS = 30 * 86_400_000;

const ACCEPT = { accept: "application/json" };
const FIELD_PATH = /^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*$/;

/**
 * The generic adapter: any house that answers JSON with a list of rounds, wherever in it the list and the fields are.
 *
 * Nothing of the house is trusted: a broken answer is a reason, a broken item is a refusal beside its raw form, and
 * neither throws. Items come in the order the house sent them; repeats are left in.
 */
const adapter: Adapter = {
  name: "json",

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

  read(feed, body, now, options = {}) {
    const text = decodeText(body);
    if (text === null) return unreadable(feed, "bytes that are not UTF-8", body.toString("latin1"));
    if (text.trim() === "") return unreadable(feed, "an empty answer", "");
    if (/^\s*</.test(text)) return unreadable(feed, "HTML or XML", text);
    const parsed = parseWireJson(text);
    if (!parsed.ok) return unreadable(feed, parsed.reason, text);
    const list = search(parsed.value, feed.items);
    if (!list.ok) return unreadable(feed, `JSON on which \`${feed.items}\` fails (${list.reason})`, text);
    if (!Array.isArray(list.value)) return unreadable(feed, `${describe(list.value)} there`, text);
    if (list.value.length > MOST_ITEMS) {
      return {
        ok: false,
        reason: `expected at most ${MOST_ITEMS} items, came ${list.value.length}; ask for fewer in feed.path`,
      };
    }
    const latest = Date.parse(now) + AHEAD_BELIEVED_MS;
    const earliest = options.oldest === undefined ? Date.parse(now) - BACK_BELIEVED_MS : Date.parse(options.oldest);
    return { ok: true, items: list.value.map((item: unknown) => readItem(feed, item, { earliest, latest })) };
  },
};

export default adapter;

function readItem(feed: FeedSettings, item: unknown, believed: { earliest: number; latest: number }): HouseItem {
  const refuse = (code: RefusalCode, reason: string, roundId: string | null): HouseItem => ({
    ok: false,
    code,
    reason,
    roundId,
    raw: item,
  });
  if (item === null || typeof item !== "object") {
    return refuse("not_an_item", `expected an object or a list for each round, came ${describe(item)}`, null);
  }
  const idFound = search(item, feed.round_id);
  const id = idFound.ok ? readId(idFound.value) : badExpression("bad_id", feed.round_id, idFound.reason);
  if (!id.ok) return refuse(id.code, id.reason, null);
  const found = search(item, feed.multiplier);
  if (!found.ok) {
    const bad = badExpression("not_a_number", feed.multiplier, found.reason);
    return refuse(bad.code, bad.reason, id.value);
  }
  const multiplier = parseMultiplier(found.value, feed);
  if (!multiplier.ok) return refuse(multiplier.code, multiplier.reason, id.value);
  const occurredAt = readTime(feed, item, believed);
  if (!occurredAt.ok) return refuse(occurredAt.code, occurredAt.reason, id.value);
  const hash = readHash(feed, item);
  if (!hash.ok) return refuse(hash.code, hash.reason, id.value);
  const { hundredths, rawValue } = multiplier;
  return {
    ok: true,
    round: { roundId: id.value, hundredths, rawValue, occurredAt: occurredAt.value, hash: hash.value },
    raw: item,
  };
}

type Field<T> = { ok: true; value: T } | { ok: false; code: RefusalCode; reason: string };

function readId(value: unknown): Field<string> {
  if (value === null || value === undefined || value === "") {
    return { ok: false, code: "missing_id", reason: `expected an id, came ${describe(value)}` };
  }
  if (typeof value === "number" || value instanceof WireNumber) {
    if (Number.isInteger(Number(value)) && !Number.isSafeInteger(Number(value))) {
      const reason = `the id ${String(value)} was sent as a number too large to be exact; expected it as a text`;
      return { ok: false, code: "bad_id", reason };
    }
    return Number.isSafeInteger(Number(value)) && Number(value) >= 0
      ? { ok: true, value: String(Number(value)) }
      : { ok: false, code: "bad_id", reason: `expected a text or a whole number as id, came ${String(value)}` };
  }
  const text = typeof value === "string" ? value.trim() : "";
  if (text === "" || text.length > LONGEST_ID || /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text)) {
    const reason = `expected a text of 1 to ${LONGEST_ID} characters or a whole number as id, came ${describe(value)}`;
    return { ok: false, code: "bad_id", reason };
  }
  return { ok: true, value: text };
}

function readTime(
  feed: FeedSettings,
  item: object,
  believed: { earliest: number; latest: number },
): Field<string | null> {
  const found = optional(feed.occurred_at, item);
  if (!found.ok) return badExpression("absurd_time", feed.occurred_at ?? "", found.reason);
  if (found.value === null || found.value === "") return { ok: true, value: null };
  const moment = parseOccurredAt(found.value);
  if (moment === null) {
    const reason = `expected a time (ISO 8601, seconds or milliseconds since 1970), came ${describe(found.value)}`;
    return { ok: false, code: "absurd_time", reason };
  }
  if (moment.ms < believed.earliest || moment.ms > believed.latest) {
    const from = new Date(believed.earliest).toISOString();
    const to = new Date(believed.latest).toISOString();
    return { ok: false, code: "absurd_time", reason: `expected a time from ${from} to ${to}, came ${moment.iso}` };
  }
  return { ok: true, value: moment.iso };
}

function readHash(feed: FeedSettings, item: object): Field<string | null> {
  const found = optional(feed.hash, item);
  if (!found.ok) return badExpression("bad_hash", feed.hash ?? "", found.reason);
  if (found.value === null || found.value === "") return { ok: true, value: null };
  const hash = typeof found.value === "string" ? found.value.trim().toLowerCase() : "";
  if (/^[0-9a-f]{64}$/.test(hash)) return { ok: true, value: hash };
  const reason = `expected a hash of 64 hexadecimal digits, came ${describe(found.value)}`;
  return { ok: false, code: "bad_hash", reason };
}

function badExpression(code: RefusalCode, expression: string, reason: string) {
  return { ok: false, code, reason: `\`${expression}\` fails on this item: ${reason}` } as const;
}

function optional(expression: string | undefined, item: object): Found {
  return expression === undefined ? { ok: true, value: null } : search(item, expression);
}

type Found = { ok: true; value: unknown } | { ok: false; reason: string };

/**
 * A JMESPath search that never throws and never sees what an object inherits. Plain paths, nearly all there are, are
 * walked here: the library would parse the expression again for each of thousands of items.
 */
function search(value: unknown, expression: string): Found {
  if (FIELD_PATH.test(expression)) {
    return { ok: true, value: expression.split(".").reduce<unknown>(ownField, value) };
  }
  try {
    const found: unknown = jmespath.search(value, expression);
    return { ok: true, value: found ?? null };
  } catch (error) {
    return { ok: false, reason: excerpt(error instanceof Error ? error.message : String(error)) };
  }
}

function ownField(value: unknown, name: string): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return null;
  const own: unknown = Object.getOwnPropertyDescriptor(value, name)?.value;
  return own ?? null;
}

function decodeText(body: Buffer): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body); // drops a byte order mark
  } catch {
    return null; // the decoder throws on the first byte that is not UTF-8
  }
}

function unreadable(feed: FeedSettings, what: string, text: string): ReadAnswer {
  const shown = excerpt(text);
  const begins = shown === "" ? "" : `, beginning with: ${shown}`;
  return {
    ok: false,
    reason: `expected JSON with a list at \`${feed.items}\`, came ${what}${begins}; check feed.path and feed.items, or wait if the house is down`,
  };
}
