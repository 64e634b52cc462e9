import { z } from "zod";
import type { Queryable } from "../../db/client.ts";
import { createNotifier } from "../../db/connections/notifier.ts";
import { readIsoTime } from "../../iso-time.ts";
import { findTablesOf } from "../../rounds/lists/table-filter-store.ts";
import type { OpsParts } from "../contract.ts";

/** Rows of a list on one page. */
export const PER_PAGE = 50;

const short = z.string().trim().max(200).default("");

/** Query parameters of every list of evidence. */
export const listing = {
  /** A house, or house/game/market; empty for all. */
  of: short,
  after: z
    .string()
    .max(80)
    .regex(/^[\w.:~+-]*$/, "expected the cursor of a link in the list")
    .default(""),
};

/** Selected ids, each once, one or several under the same name; `none` is the error if nothing is selected. */
export function idsOf(most: number, none: string) {
  const id = z.string().regex(/^\d{1,18}$/, "expected an id");
  return z
    .union([id, z.array(id).max(most)], {
      error: ({ input }) => (input === undefined ? none : `expected at most ${most} ids`),
    })
    .transform((given) => [...new Set([given].flat())].map(BigInt));
}

/** A reason for the audit log. */
export const reason = z.string().trim().min(3, "expected a reason of 3 characters or more").max(500);

/** A time as typed, to ISO 8601; UTC if it has no zone. Null for an empty field. */
export const time = z
  .string()
  .trim()
  .max(40)
  .default("")
  .transform((given, context): string | null => {
    if (given === "") return null;
    const read = readIsoTime(given);
    if (read !== null) return new Date(read.ms).toISOString();
    context.addIssue("expected a time such as 2026-11-21 or 2026-11-21 04:00");
    return z.NEVER;
  });

/** The ids of the tables that a list is limited to: null for all, none if there is no such house or table. */
export async function choose(
  sql: Queryable,
  of: string,
): Promise<{ tableIds: readonly number[] | null; problem: string | null }> {
  if (of === "") return { tableIds: null, problem: null };
  const found = await findTablesOf(sql, of);
  if (found !== null) return { tableIds: found.ids, problem: null };
  return { tableIds: [], problem: `there is no house or table ${of}; expected a house, or house/game/market` };
}

/** The rows of one page, from one more than it shows, and the cursor of the next page. */
export function pageOf<Row>(
  rows: readonly Row[],
  cursorOf: (row: Row) => string,
): { rows: Row[]; next: string | null } {
  const page = rows.slice(0, PER_PAGE);
  const last = page.at(-1);
  return { rows: page, next: rows.length > PER_PAGE && last !== undefined ? cursorOf(last) : null };
}

/** A cursor of time and id, as text for a URL. */
export function cursorText(at: string, id: bigint): string {
  return `${at.replace(" ", "T")}~${id}`;
}

/** Parses a cursor of `cursorText`; null for any other text. */
export function readCursor(text: string): { at: string; id: bigint } | null {
  const [, at = "", id = ""] = /^(\d{4}-\d{2}-\d{2}T[\d:.]+(?:\+00|Z))~(\d{1,18})$/.exec(text) ?? [];
  return readIsoTime(at) === null ? null : { at: at.replace("T", " "), id: BigInt(id) };
}

/** Notifies the API processes that published data has changed. */
export async function tellReaders({ sql, log }: OpsParts): Promise<void> {
  const notifier = createNotifier(sql, log);
  notifier.published();
  await notifier.close();
}

const LONGEST_EXCERPT = 240;

/** The beginning of a text for a list. */
export function excerptOf(text: string): string {
  return text.length <= LONGEST_EXCERPT ? text : `${text.slice(0, LONGEST_EXCERPT).toWellFormed()}…`;
}
