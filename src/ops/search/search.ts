import { z } from "zod";
import { SETTING_GROUPS } from "../../config/settings-text.ts";
import type { Sql } from "../../db/client.ts";
import { opsPage, type OpsParts, type Role } from "../contract.ts";
import { findJobs } from "./jobs.ts";
import {
  type Find,
  findAccounts,
  findCalibrations,
  findForecasts,
  findHouses,
  findKeys,
  findLines,
  findMails,
  findPayloads,
  findRuns,
  findTables,
  findTopups,
  findWithin,
  type FoundRow,
} from "./search-store.ts";
import { readTerm, type SearchTerm } from "./term.ts";

const MOST_SHOWN = 8;
const LONGEST_TEXT = 200;

/** A kind of thing that is searched. */
interface Kind {
  label: string;
  /** The page of a row. */
  hrefOf: (key: string) => string;
  /** The list with all rows of this kind that match; null if there is no such list. */
  allOf?: (text: string) => string;
  find: Find;
  /** The roles that may open the pages of this kind; every role if not given. */
  roles?: readonly Role[];
}

const at = (path: string) => (key: string) => `/ops/${path}/${key}`;
const listAt = (path: string, name: string) => (text: string) => `/ops${path}?${name}=${encodeURIComponent(text)}`;

const KINDS: readonly Kind[] = [
  { label: "Houses", hrefOf: at("houses"), find: findHouses },
  { label: "Tables", hrefOf: at("tables"), allOf: listAt("", "q"), find: findTables },
  { label: "Callers", hrefOf: at("callers"), allOf: listAt("/callers", "q"), find: findAccounts },
  { label: "Keys", hrefOf: at("callers"), find: findKeys },
  { label: "Top-ups", hrefOf: at("top-ups"), find: findTopups },
  { label: "Bank lines", hrefOf: at("bank/lines"), allOf: listAt("/bank", "q"), find: findLines },
  { label: "Calibration runs", hrefOf: at("calibrations/runs"), find: findRuns },
  { label: "Calibrations", hrefOf: at("calibrations"), find: findCalibrations },
  { label: "Payloads", hrefOf: at("payloads"), find: findPayloads },
  { label: "Forecasts", hrefOf: (key) => `/ops/tables/${key}#forecasts`, find: findForecasts },
  { label: "Mails", hrefOf: at("mails"), allOf: listAt("/mails", "recipient"), find: findMails },
  {
    label: "Settings",
    hrefOf: (name) => `/ops/settings#${name}`,
    find: (_, term, limit) => Promise.resolve(findSettings(term, limit)),
    roles: ["admin"],
  },
];

/** What was found of one kind. */
interface Group {
  label: string;
  rows: (FoundRow & { href: string })[];
  /** Whether there are more rows than are shown, and the list with all of them. */
  isMore: boolean;
  all: string | null;
  /** Why this kind was not searched; null if it was. */
  problem: string | null;
}

const query = z.object({ q: z.string().trim().max(LONGEST_TEXT).default("") });

/**
 * Finds houses, tables, callers, keys, money, calibrations, payloads, jobs and mails by id, name, address or reference.
 * If exactly one of them is named by the whole text, it redirects to its page.
 */
export const searchPage = opsPage({
  path: "/search",
  query,
  async show(parts, { visitor, query: { q } }) {
    const term = readTerm(q);
    const groups = q === "" ? [] : await search(parts, term, visitor.role);
    const exact = groups.flatMap(({ rows }) => rows.filter(({ isExact }) => isExact));
    const [only] = exact;
    if (only !== undefined && exact.length === 1) return { location: only.href };
    const found = groups.filter(({ rows, problem }) => rows.length > 0 || problem !== null);
    const data = { q: term.text, groups: found, isWholeKey: term.isWholeKey };
    return { template: "search/search", title: "Search", data };
  },
});

/** Searches each kind in turn, so that a search takes one connection and not all of them. */
async function search({ sql, queues }: OpsParts, term: SearchTerm, role: Role): Promise<Group[]> {
  const groups: Group[] = [];
  for (const kind of KINDS.filter(({ roles }) => roles === undefined || roles.includes(role))) {
    groups.push(await searchKind(sql, kind, term));
  }
  const jobs = await findJobs(queues, term, MOST_SHOWN + 1);
  return [...groups, groupOf({ label: "Queue runs", ...jobs }, null)];
}

async function searchKind(sql: Sql, { label, hrefOf, allOf, find }: Kind, term: SearchTerm): Promise<Group> {
  const rows = await findWithin(sql, find, term, MOST_SHOWN + 1);
  const linked = rows?.map((row) => ({ ...row, href: hrefOf(row.key) })) ?? [];
  const problem = rows === null ? "This search took too long and was stopped. Search for a longer text." : null;
  return groupOf({ label, rows: linked, problem }, allOf?.(term.text) ?? null);
}

function groupOf({ label, rows, problem }: Pick<Group, "label" | "rows" | "problem">, all: string | null): Group {
  return { label, rows: rows.slice(0, MOST_SHOWN), isMore: rows.length > MOST_SHOWN, all, problem };
}

function findSettings({ text }: SearchTerm, limit: number): FoundRow[] {
  const wanted = text.toUpperCase().replaceAll(/[ -]/g, "_");
  return Object.entries(SETTING_GROUPS)
    .flatMap(([group, settings]) => Object.keys(settings).map((name) => ({ name, group })))
    .filter(({ name }) => wanted.length > 2 && name.includes(wanted))
    .map(({ name, group }) => ({ key: name, label: name, detail: group, isExact: name === wanted }))
    .slice(0, limit);
}
