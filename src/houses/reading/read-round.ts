import { cut, LONGEST_REASON } from "../../text.ts";
import type { FeedOptions, HouseItem, ReadOptions, RefusalCode } from "../contract.ts";
import { describe } from "./excerpt.ts";
import { parseMultiplier } from "./multiplier.ts";
import { parseOccurredAt } from "./occurred-at.ts";
import { WireNumber } from "./wire-json.ts";

/** The longest id a round may have, as the table `rounds` takes it. */
const LONGEST_ID = 128;
/** A missing or wrong zone shifts a clock by up to 14 hours, so a day either way is accepted. */
const LONGEST_AHEAD_MS = 86_400_000;
/** A page of a slow game, or the first one after a long outage of a house, lists rounds of earlier days. */
const LONGEST_BACK_MS = 30 * 86_400_000;

/** The raw fields of a round; what a house does not send is absent or null. */
export interface RoundFields {
  id: unknown;
  multiplier: unknown;
  occurredAt?: unknown;
  hash?: unknown;
}

/** The accepted times, in milliseconds since 1970. */
export interface AcceptedTimes {
  earliest: number;
  latest: number;
}

/** The accepted times in a response that arrived at `now` (ISO 8601). */
export function acceptedTimes(now: string, { oldest }: ReadOptions = {}): AcceptedTimes {
  return {
    earliest: oldest === undefined ? Date.parse(now) - LONGEST_BACK_MS : Date.parse(oldest),
    latest: Date.parse(now) + LONGEST_AHEAD_MS,
  };
}

/** Builds a round from the fields of one item, or a refusal that names the field and its value. */
export function readRound(
  fields: RoundFields,
  raw: unknown,
  feed: Pick<FeedOptions, "scale" | "instant">,
  accepted: AcceptedTimes,
): HouseItem {
  const id = readId(fields.id);
  if (!id.ok) return refused(id, null, raw);
  const multiplier = parseMultiplier(fields.multiplier, feed);
  if (!multiplier.ok) return refused(multiplier, id.value, raw);
  const occurredAt = readTime(fields.occurredAt ?? null, accepted);
  if (!occurredAt.ok) return refused(occurredAt, id.value, raw);
  const hash = readHash(fields.hash ?? null);
  if (!hash.ok) return refused(hash, id.value, raw);
  const { hundredths, rawValue } = multiplier;
  return {
    ok: true,
    round: { roundId: id.value, hundredths, rawValue, occurredAt: occurredAt.value, hash: hash.value },
    raw,
  };
}

/** A quarantined item. */
export function refused(
  { code, reason }: { code: RefusalCode; reason: string },
  roundId: string | null,
  raw: unknown,
): HouseItem {
  return { ok: false, code, reason: cut(reason, LONGEST_REASON), roundId, raw };
}

/** One field, or why it cannot be read. */
type Field<T> = { ok: true; value: T } | { ok: false; code: RefusalCode; reason: string };

/**
 * An id as text: whole numbers as their digits. Above 2^53 they are refused: a house that computes with doubles sends two
 * rounds with one id, and nothing shows whether it does.
 */
export function readId(value: unknown): Field<string> {
  if (value === null || value === undefined || value === "") {
    return { ok: false, code: "missing_id", reason: `expected an id, found ${describe(value)}` };
  }
  if (typeof value === "number" || value instanceof WireNumber) {
    if (Number.isInteger(Number(value)) && !Number.isSafeInteger(Number(value))) {
      const reason = `the id ${describe(value)} was sent as a number too large to be exact; expected it as a text`;
      return { ok: false, code: "bad_id", reason };
    }
    return Number.isSafeInteger(Number(value)) && Number(value) >= 0
      ? { ok: true, value: String(Number(value)) }
      : { ok: false, code: "bad_id", reason: `expected a text or a whole number as id, found ${describe(value)}` };
  }
  const text = typeof value === "string" ? value.trim() : "";
  if (text === "" || text.length > LONGEST_ID || /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text)) {
    const reason = `expected a text of 1 to ${LONGEST_ID} characters or a whole number as id, found ${describe(value)}`;
    return { ok: false, code: "bad_id", reason };
  }
  return { ok: true, value: text };
}

function readTime(value: unknown, accepted: AcceptedTimes): Field<string | null> {
  if (value === null || value === "") return { ok: true, value: null };
  const moment = parseOccurredAt(value);
  if (moment === null) {
    const reason = `expected a time (ISO 8601, seconds or milliseconds since 1970), found ${describe(value)}`;
    return { ok: false, code: "absurd_time", reason };
  }
  if (moment.ms < accepted.earliest || moment.ms > accepted.latest) {
    const from = new Date(accepted.earliest).toISOString();
    const to = new Date(accepted.latest).toISOString();
    return { ok: false, code: "absurd_time", reason: `expected a time from ${from} to ${to}, found ${moment.iso}` };
  }
  return { ok: true, value: moment.iso };
}

function readHash(value: unknown): Field<string | null> {
  if (value === null || value === "") return { ok: true, value: null };
  const hash = typeof value === "string" ? value.trim().toLowerCase() : "";
  if (/^[0-9a-f]{64}$/.test(hash)) return { ok: true, value: hash };
  const reason = `expected a hash of 64 hexadecimal digits, found ${describe(value)}`;
  return { ok: false, code: "bad_hash", reason };
}
