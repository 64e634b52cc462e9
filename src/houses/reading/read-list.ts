import { z } from "zod";
import { cut, LONGEST_REASON } from "../../text.ts";
import type { FeedOptions, HouseItem, ReadResponse, ReadOptions, RefusalCode } from "../contract.ts";
import { describe, excerpt } from "./excerpt.ts";
import { acceptedTimes, readId, readRound, refused, type AcceptedTimes, type RoundFields } from "./read-round.ts";
import { foundInstead, decodeJson } from "./read-text.ts";
import { WireNumber } from "./wire-json.ts";

/** A text or a number as received, with every digit. */
export const wire = z.union([z.string(), z.number(), z.instanceof(WireNumber)], {
  error: "expected a text or a number",
});

/** The role of a field of an item, which decides how its refusal is named. */
type FieldKind = "id" | "multiplier" | "time" | "hash" | "item";

/** The structure of a house's JSON list; `Item` is one of its items after the schema. */
export interface ListShape<Item> {
  /** What is expected, in a few words, such as `Blaze's newest crash games`. */
  what: string;
  /** The schema of the whole response; outputs its list. */
  response: z.ZodType<unknown[]>;
  item: z.ZodType<Item>;
  /** By the name of the field. */
  kinds: Readonly<Record<string, FieldKind>>;
  /** The fields of a round; null for an item that is not finished yet. */
  round(item: Item): RoundFields | null;
  /** The error that the house itself reports, in a response with status 200. */
  houseError?(response: unknown): string | null;
}

/** Responses with more items are refused: no house lists more than a hundred rounds. */
const MOST_ITEMS = 5_000;
const ADVICE =
  "wait if the house is down; if browsers get another response, its format changed or it requires a session: see `house check --explain`";

/**
 * Parses a response by the structure of its house. If it cannot be read, the reason names the field, the expected and the
 * found value; unfinished items are skipped, since a later response has them again.
 */
export function readList<Item>(
  shape: ListShape<Item>,
  feed: Pick<FeedOptions, "scale" | "instant">,
  body: Buffer,
  now: string,
  options?: ReadOptions,
): ReadResponse {
  const expected = { what: `JSON with ${shape.what}`, advice: ADVICE };
  const parsed = decodeJson(body, expected);
  if (!parsed.ok) return parsed;
  const houseError = shape.houseError?.(parsed.value) ?? null;
  if (houseError !== null) return { ok: false, reason: cut(houseError, LONGEST_REASON) };
  const list = shape.response.safeParse(parsed.value, { reportInput: true });
  if (!list.success) {
    const issue = list.error.issues[0];
    const where = issue?.path.join(".") ?? "";
    const found = where === "" ? describe(parsed.value) : `${describe(issue?.input)} at \`${where}\``;
    return { ok: false, reason: foundInstead(expected, found, body.toString()) };
  }
  if (list.data.length > MOST_ITEMS) {
    return { ok: false, reason: `expected at most ${MOST_ITEMS} items, found ${list.data.length}` };
  }
  const accepted = acceptedTimes(now, options);
  return { ok: true, items: list.data.flatMap((item) => readOne(shape, feed, item, accepted) ?? []) };
}

function readOne<Item>(
  shape: ListShape<Item>,
  feed: Pick<FeedOptions, "scale" | "instant">,
  raw: unknown,
  accepted: AcceptedTimes,
): HouseItem | null {
  if (raw === null || typeof raw !== "object" || Array.isArray(raw)) {
    return refused(
      { code: "not_an_item", reason: `expected an object for each round, found ${describe(raw)}` },
      null,
      raw,
    );
  }
  const item = shape.item.safeParse(raw, { reportInput: true });
  if (!item.success) {
    const [issue] = item.error.issues;
    return refused(explain(shape, issue, raw), roundIdOf(shape, raw), raw);
  }
  const fields = shape.round(item.data);
  return fields === null ? null : readRound(fields, raw, feed, accepted);
}

const MISSING: Readonly<Record<FieldKind, RefusalCode>> = {
  id: "missing_id",
  multiplier: "missing_multiplier",
  time: "absurd_time",
  hash: "bad_hash",
  item: "not_an_item",
};
const WRONG: Readonly<Record<FieldKind, RefusalCode>> = { ...MISSING, id: "bad_id", multiplier: "not_a_number" };

function explain<Item>(
  { kinds }: ListShape<Item>,
  issue: z.core.$ZodIssue | undefined,
  raw: object,
): { code: RefusalCode; reason: string } {
  const path = issue?.path.map(String) ?? [];
  const kind = path.toReversed().flatMap((name) => (Object.hasOwn(kinds, name) ? [kinds[name]] : []))[0] ?? "item";
  // refined and transformed fields are reported as a whole: the field itself has the found value
  const found = issue?.code === "custom" ? ownValue(raw, path.at(-1) ?? "") : issue?.input;
  const isMissing = found === undefined || found === null;
  const code = (isMissing ? MISSING : WRONG)[kind];
  const fields = Object.keys(raw)
    .slice(0, 12)
    .map((name) => excerpt(name, 40))
    .join(", ");
  const advice = isMissing
    ? `; the item has ${fields === "" ? "no fields" : fields}: the house renamed the field, or this is the list of another game`
    : "";
  return {
    code,
    reason: `${issue?.message ?? "expected another item"} as \`${path.join(".")}\`, found ${describe(found)}${advice}`,
  };
}

function roundIdOf<Item>({ kinds }: ListShape<Item>, raw: object): string | null {
  const name = Object.keys(kinds).find((field) => kinds[field] === "id") ?? "";
  const id = readId(ownValue(raw, name));
  return id.ok ? id.value : null;
}

function ownValue(raw: object, name: string): unknown {
  const value: unknown = Object.getOwnPropertyDescriptor(raw, name)?.value;
  return value;
}
