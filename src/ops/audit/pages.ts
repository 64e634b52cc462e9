import { z } from "zod";
import { type AuditSearch, type KeptEntry, listAuditActions, searchAudit } from "../../audit/store.ts";
import { csvText } from "../../csv.ts";
import type { OpsPage } from "../contract.ts";
import { PageError } from "../../frame/errors.ts";

const PER_PAGE = 50;
/** One file holds at most so many entries: more are asked for by time. */
const MOST_IN_FILE = 50_000;

/** Between these a time is one that PostgreSQL can keep. */
const [FIRST, LAST] = [new Date("1970-01-01T00:00Z"), new Date("9999-01-01T00:00Z")];

const text = z.string().trim().max(200).default("");
/** A time as a form's field or somebody's typing has it; UTC where no zone is given. */
const time = z
  .string()
  .trim()
  .max(40)
  .default("")
  .transform((given, context) => {
    if (given === "") return null;
    const hasZone = /(?:Z|[+-]\d\d:?\d\d)$/i.test(given);
    const whole = given.includes("T") || given.includes(" ") ? given.replace(" ", "T") : `${given}T00:00`;
    const at = new Date(hasZone ? whole : `${whole}Z`);
    if (at >= FIRST && at < LAST) return at;
    context.addIssue("expected a time such as 2026-11-21 or 2026-11-21 04:00");
    return z.NEVER;
  });
const search = z.strictObject({ actor: text, action: text, target: text, text, from: time, to: time });
const searchPage = search.extend({ page: z.coerce.number().int().min(1).max(1_000_000).default(1) });

type SearchQuery = z.infer<typeof search>;

const auditPage: OpsPage<z.infer<typeof searchPage>> = {
  path: "/audit",
  nav: { label: "Audit log", order: 42, group: "Administration" },
  query: searchPage,
  async show({ sql }, { query: { page, ...query } }) {
    const [{ entries, total }, actions] = await Promise.all([
      searchAudit(sql, query satisfies AuditSearch, { page, perPage: PER_PAGE }),
      listAuditActions(sql),
    ]);
    const data = { entries, actions, paging: { page, perPage: PER_PAGE, total } };
    return { template: "audit/audit", title: "Audit log", data };
  },
};

/** The entries that were looked for as one file; refused where they are more than it holds, so that none is missing unseen. */
export const auditFile = (mostEntries: number): OpsPage<SearchQuery> => ({
  path: "/audit/audit.csv",
  query: search,
  async show({ sql }, { query }) {
    const { entries, total } = await searchAudit(sql, query, { page: 1, perPage: mostEntries });
    if (total > entries.length) {
      throw new PageError(
        422,
        `expected at most ${mostEntries} entries in a file, found ${total}; choose a shorter time`,
      );
    }
    return { file: "audit.csv", type: "text/csv", text: csvOf(entries) };
  },
});

/** Looking through what was done. */
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
    entry.before === null ? "" : JSON.stringify(entry.before),
    entry.after === null ? "" : JSON.stringify(entry.after),
    entry.reason,
    entry.requestId,
    entry.address,
    entry.hash,
  ]);
  return csvText([COLUMNS, ...rows.map((row) => row.map((value) => value ?? ""))]);
}
