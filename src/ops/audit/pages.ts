import { z } from "zod";
import { type AuditSearch, type KeptEntry, listAuditFacets, searchAudit } from "../../audit/store.ts";
import { csvText } from "../../csv.ts";
import { type OpsPage, opsPage } from "../contract.ts";
import { PageError } from "../../frame/errors.ts";
import { time } from "../payloads/listing.ts";
import { diffOf, maskedText } from "./diff.ts";
import { sentenceOf } from "./sentence.ts";

const PER_PAGE = 50;
/** Entries of one file; longer times are downloaded in parts. */
const MOST_IN_FILE = 50_000;

const text = z.string().trim().max(200).default("");
const date = time.transform((at) => (at === null ? null : new Date(at)));
const whole = z
  .enum(["", "1"])
  .default("")
  .transform((given) => given === "1");
const search = z.strictObject({ actor: text, action: text, target: text, whole, text, from: date, to: date });
const searchPage = search.extend({
  before: z
    .string()
    .regex(/^\d{0,18}$/, "expected the number of an entry")
    .default(""),
});

const auditPage = opsPage({
  path: "/audit",
  nav: { label: "Audit log", order: 42, group: "Administration" },
  query: searchPage,
  async show({ sql }, { query: { before, ...query } }) {
    const [{ entries, next }, facets] = await Promise.all([
      searchAudit(sql, query satisfies AuditSearch, {
        before: before === "" ? null : BigInt(before),
        limit: PER_PAGE,
      }),
      listAuditFacets(sql),
    ]);
    const rows = entries.map((entry) => ({
      ...entry,
      sentence: sentenceOf(entry),
      diff: diffOf(entry.before, entry.after),
    }));
    const data = { rows, ...facets, next, before, perPage: PER_PAGE };
    return { template: "audit/audit", title: "Audit log", data };
  },
});

/** The matching entries as a file; refused if there are more than it holds, so that none is missing unnoticed. */
export const auditFile = (mostEntries: number) =>
  opsPage({
    path: "/audit/audit.csv",
    query: search,
    async show({ sql }, { query }) {
      const found: KeptEntry[] = [];
      let before: bigint | null = null;
      do {
        const { entries, next } = await searchAudit(sql, query, { before, limit: mostEntries - found.length + 1 });
        found.push(...entries);
        if (found.length > mostEntries)
          throw new PageError(
            422,
            `expected at most ${mostEntries} entries in a file, found more; choose a shorter time`,
          );
        before = next;
      } while (before !== null);
      return { file: "audit.csv", type: "text/csv", text: csvOf(found) };
    },
  });

/** The search in the audit log, as a page and as a file. */
export const auditPages: readonly OpsPage[] = [auditPage, auditFile(MOST_IN_FILE)];

const COLUMNS = [
  "seq", "at", "surface", "actor", "role", "action", "target", "before", "after", "reason", "request_id", "address", "hash",
]; // prettier-ignore

function csvOf(entries: readonly KeptEntry[]): string {
  const rows = entries.map((entry) => [
    String(entry.seq),
    entry.at.toISOString(),
    entry.surface,
    entry.actor,
    entry.role,
    entry.action,
    entry.target,
    maskedText(entry.before),
    maskedText(entry.after),
    entry.reason,
    entry.requestId,
    entry.address,
    entry.hash,
  ]);
  return csvText([COLUMNS, ...rows.map((row) => row.map((value) => value ?? ""))]);
}
