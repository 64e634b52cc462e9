import { keyState, keyWorks } from "../../callers/key-state-store.ts";
import type { Queryable, Sql } from "../../db/client.ts";
import type { SearchTerm } from "./term.ts";

/** A group takes at most this long. What it would have found is then reported as not searched. */
const GROUP_MS = 1_500;
/** PostgreSQL's code for a statement that was cancelled, here by its timeout. */
const CANCELLED = "57014";

/** A row that was found. */
export interface FoundRow {
  /** The identifying part of its page's path: an id, or the name of a house or table. */
  key: string;
  label: string;
  /** Distinguishes it from others of its kind. */
  detail: string;
  /** Whether the whole text names it, and not only a part. */
  isExact: boolean;
}

/** Finds rows of one kind; at most `limit`, exact ones first. */
export type Find = (sql: Queryable, term: SearchTerm, limit: number) => Promise<FoundRow[]>;

/** Runs a search within 1.5 s. Null if it took longer. */
export async function findWithin(sql: Sql, find: Find, term: SearchTerm, limit: number): Promise<FoundRow[] | null> {
  try {
    return await sql.begin(async (tx) => {
      await tx`select set_config('statement_timeout', ${String(GROUP_MS)}, true)`;
      return find(tx, term, limit);
    });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === CANCELLED) return null;
    throw error;
  }
}

/** Returns the id of a text that names this kind, or no kind; otherwise null. */
function idFor({ id, kind }: SearchTerm, own: SearchTerm["kind"]): bigint | null {
  return kind === null || kind === own ? id : null;
}

/** Houses by id or name. */
export const findHouses: Find = (sql, { text }, limit) => sql<FoundRow[]>`
  select
    id as key,
    name as label,
    id || case when paused_at is not null then ', paused' when not enabled then ', disabled' else '' end as detail,
    lower(${text}) in (id, lower(name)) as "isExact"
  from houses
  where strpos(id, lower(${text})) > 0
    or strpos(lower(name), lower(${text})) > 0
  order by 4 desc, id
  limit ${limit}`;

/** Tables by `house/game/market` or a part of it. */
export const findTables: Find = (sql, { text }, limit) => sql<FoundRow[]>`
  select
    t.house_id || '/' || t.game || '/' || t.market as key,
    t.house_id || '/' || t.game || '/' || t.market as label,
    'newest round ' || coalesce(d.newest_round_id, 'none yet') as detail,
    t.house_id || '/' || t.game || '/' || t.market = lower(${text}) as "isExact"
  from tables t
  join table_heads d on d.table_id = t.id
  where strpos(t.house_id || '/' || t.game || '/' || t.market, lower(${text})) > 0
  order by 4 desc, t.house_id, t.position
  limit ${limit}`;

/** Accounts by e-mail address or id. */
export const findAccounts: Find = (sql, term, limit) => sql<FoundRow[]>`
  select
    id::text as key,
    email as label,
    'account ' || id || case
      when closed_at is not null then ', closed'
      when suspended_at is not null then ', suspended'
      else ''
    end as detail,
    lower(email) = lower(${term.text}) or id is not distinct from ${idFor(term, "account")} as "isExact"
  from accounts
  where id = ${idFor(term, "account")}
    or strpos(lower(email), lower(${term.text})) > 0
  order by 4 desc, email
  limit ${limit}`;

/** Keys by id, name, or ending: nothing else of a key is stored. */
export const findKeys: Find = (sql, term, limit) => sql<FoundRow[]>`
  select
    k.account_id::text as key,
    k.name || ' …' || k.last4 as label,
    'key ' || k.id || ' of ' || a.email || case
      when ${keyWorks(sql)} then ''
      else ', ' || ${keyState(sql)}
    end as detail,
    k.id is not distinct from ${term.kind === "key" ? term.id : null} as "isExact"
  from keys k
  join accounts a on a.id = k.account_id
  where k.id = ${term.kind === "key" ? term.id : null}
    or k.last4 = ${term.keyEnding}
    or strpos(lower(k.name), lower(${term.text})) > 0
  order by 4 desc, k.last4 is distinct from ${term.keyEnding}, k.id desc
  limit ${limit}`;

/** Top-ups by reference, the beginning of one, or id. */
export const findTopups: Find = (sql, term, limit) => sql<FoundRow[]>`
  select
    t.id::text as key,
    t.reference as label,
    t.method || ', ' || t.state || ', ' || a.email as detail,
    upper(t.reference) = ${term.reference} or t.id is not distinct from ${idFor(term, "topup")} as "isExact"
  from topups t
  join accounts a on a.id = t.account_id
  where t.id = ${idFor(term, "topup")}
    or starts_with(upper(t.reference), ${term.reference})
  order by 4 desc, t.id desc
  limit ${limit}`;

/** Lines of bank statements by the bank's reference, the beginning of one, or id. */
export const findLines: Find = (sql, term, limit) => sql<FoundRow[]>`
  select
    id::text as key,
    bank || ' ' || bank_ref as label,
    sender || ', ' || value_date || ', ' || state as detail,
    lower(bank_ref) = lower(${term.text}) or id is not distinct from ${idFor(term, "line")} as "isExact"
  from bank_lines
  where id = ${idFor(term, "line")}
    or starts_with(lower(bank_ref), lower(${term.reference}))
  order by 4 desc, id desc
  limit ${limit}`;

/** Manual calibration runs by id. */
export const findRuns: Find = (sql, term, limit) => sql<FoundRow[]>`
  select
    r.id::text as key,
    'Run ' || r.id as label,
    t.house_id || '/' || t.game || '/' || t.market || ', ' || r.status as detail,
    true as "isExact"
  from calibration_runs r
  join tables t on t.id = r.table_id
  where r.id = ${idFor(term, "run")}
    and r.kind = 'manual'
  limit ${limit}`;

/** Calibrations by id. */
export const findCalibrations: Find = (sql, term, limit) => sql<FoundRow[]>`
  select
    c.id::text as key,
    'Calibration ' || c.id as label,
    t.house_id || '/' || t.game || '/' || t.market || ', ' || c.kind as detail,
    true as "isExact"
  from calibrations c
  join tables t on t.id = c.table_id
  where c.id = ${idFor(term, "calibration")}
  limit ${limit}`;

/** Mails by id or recipient. */
export const findMails: Find = (sql, term, limit) => sql<FoundRow[]>`
  select
    id::text as key,
    subject as label,
    'mail ' || id || ' to ' || recipient as detail,
    id is not distinct from ${term.kind === "mail" ? term.id : null} as "isExact"
  from mails
  where id = ${term.kind === "mail" ? term.id : null}
    or lower(recipient) = lower(${term.kind === null ? term.text : null})
  order by 4 desc, id desc
  limit ${limit}`;

/** The payload that the text names by table and time. */
export const findPayloads: Find = (sql, { payload }, limit) => sql<FoundRow[]>`
  select
    p.table_id || '/' || utc_text(p.received_at) as key,
    t.house_id || '/' || t.game || '/' || t.market || ' at ' || utc_text(p.received_at) as label,
    'status ' || p.status || ', ' || p.state as detail,
    true as "isExact"
  from (
    select table_id, received_at, status, state
    from payloads
    where table_id = ${payload?.tableId ?? null}
      and received_at = ${payload?.receivedAt ?? null}::text::timestamptz
    union
    select table_id, received_at, status, state
    from payloads_kept
    where table_id = ${payload?.tableId ?? null}
      and received_at = ${payload?.receivedAt ?? null}::text::timestamptz
  ) p
  join tables t on t.id = p.table_id
  limit ${limit}`;

/** The table of a forecast that the text names by its public id. */
export const findForecasts: Find = (sql, { forecast }, limit) => sql<FoundRow[]>`
  select
    t.house_id || '/' || t.game || '/' || t.market as key,
    'Forecast ' || ${forecast?.id ?? ""}::text as label,
    'of ' || t.house_id || '/' || t.game || '/' || t.market as detail,
    true as "isExact"
  from tables t
  where t.id = ${forecast?.tableId ?? null}
  limit ${limit}`;
