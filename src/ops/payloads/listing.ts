import { z } from "zod";
import type { Queryable } from "../../db/client.ts";
import { createNotifier } from "../../db/notifier.ts";
import { findTablesOf } from "../../rounds/lists/table-filter-store.ts";
import type { OpsParts } from "../contract.ts";

/** Rows of a list on one page. */
export const PER_PAGE = 50;

const short = z.string().trim().max(200).default("");

/** What lists of evidence have in common: whose, in which order, and after which row they go on. */
export const listing = {
  /** A house, or house/game/market; empty for all. */
  of: short,
  after: z
    .string()
    .max(80)
    .regex(/^[\w.:~+-]*$/, "expected a place in the list as a link of it has it")
    .default(""),
};

/** An id in a path or a form; null for a text that is none. */
export function idOf(text: string | undefined): bigint | null {
  return text !== undefined && /^\d{1,18}$/.test(text) ? BigInt(text) : null;
}

/** Chosen ids, each once, one of them or several under the same name; `none` is said where nothing was chosen. */
export function idsOf(most: number, none: string) {
  const id = z.string().regex(/^\d{1,18}$/, "expected an id");
  return z
    .union([id, z.array(id).max(most)], {
      error: ({ input }) => (input === undefined ? none : `expected at most ${most} ids`),
    })
    .transform((given) => [...new Set([given].flat())].map(BigInt));
}

/** The reason that somebody types for the audit log. */
export const reason = z.string().trim().min(3, "expected a reason of 3 characters or more").max(500);

const [FIRST, LAST] = [new Date("1970-01-01T00:00Z"), new Date("9999-01-01T00:00Z")];

/** A time as a form's field or somebody's typing has it, as ISO 8601; UTC where no zone is given. Null for an empty field. */
export const time = z
  .string()
  .trim()
  .max(40)
  .default("")
  .transform((given, context): string | null => {
    if (given === "") return null;
    const hasZone = /(?:Z|[+-]\d\d:?\d\d)$/i.test(given);
    const whole = /[T ]/.test(given) ? given.replace(" ", "T") : `${given}T00:00`;
    const at = new Date(hasZone ? whole : `${whole}Z`);
    // a year of more than four digits, or of none, is one that PostgreSQL reads in another way or not at all
    if (at >= FIRST && at < LAST) return at.toISOString();
    context.addIssue("expected a time such as 2026-11-21 or 2026-11-21 04:00");
    return z.NEVER;
  });

/** The ids of the tables that a list is limited to: null for all, none where there is no such house or table. */
export async function choose(
  sql: Queryable,
  of: string,
): Promise<{ tableIds: readonly number[] | null; problem: string | null }> {
  if (of === "") return { tableIds: null, problem: null };
  const found = await findTablesOf(sql, of);
  if (found !== null) return { tableIds: found.ids, problem: null };
  return { tableIds: [], problem: `there is no house or table ${of}; expected a house, or house/game/market` };
}

/** The rows of one page out of those that were read, one more than it shows, and after which the next page begins. */
export function pageOf<Row>(
  rows: readonly Row[],
  cursorOf: (row: Row) => string,
): { rows: Row[]; next: string | null } {
  const shown = rows.slice(0, PER_PAGE);
  const last = shown.at(-1);
  return { rows: shown, next: rows.length > PER_PAGE && last !== undefined ? cursorOf(last) : null };
}

/** A place in a list by time and id, as text for a URL. */
export function cursorText(at: string, id: bigint): string {
  return `${at.replace(" ", "T")}~${id}`;
}

/** The place that a text of `cursorText` names; null for any other. */
export function readCursor(text: string): { at: string; id: bigint } | null {
  const [, at = "", id = ""] = /^(\d{4}-\d{2}-\d{2}T[\d:.]+(?:\+00|Z))~(\d{1,18})$/.exec(text) ?? [];
  return at === "" ? null : { at: at.replace("T", " "), id: BigInt(id) };
}

/** Tells the API processes that what callers see has changed. */
export async function tellReaders({ sql, log }: OpsParts): Promise<void> {
  const notifier = createNotifier(sql, log);
  notifier.published();
  await notifier.close();
}

/** The start of a text for a list; what is longer is on its own page. */
export function excerptOf(text: string, most = 240): string {
  return text.length <= most ? text : `${text.slice(0, most).toWellFormed()}…`;
}

/** JSON with its parts on lines of their own; any other text as it is. */
export function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
