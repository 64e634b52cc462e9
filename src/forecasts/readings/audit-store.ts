import type { Queryable } from "../../db/client.ts";
import type { Query } from "../../db/query.ts";
import type { AuditRow } from "./house-audit.ts";
import { EVIDENCE_PER_TABLE } from "./reading-facts.ts";

/** Audit rows of a table. */
export interface TableAudits {
  tableId: number;
  rows: readonly AuditRow[];
}

/**
 * The statements that store the audit rows of hours with rounds, and the other observations of the house by the end of each
 * hour; none if there are no rows. The newest stored row is updated too: its hour may have continued without a round.
 */
export function saveAuditsStatements(tx: Queryable, audits: readonly TableAudits[]): Query<readonly unknown[]>[] {
  const rows = audits.flatMap(({ tableId, rows: own }) =>
    own.map(({ edgePpm, lnE, lnEMax, seq, ...row }) => ({
      ...row,
      table_id: tableId,
      seq: String(seq),
      edge_ppm: edgePpm,
      ln_e: String(lnE),
      ln_e_max: String(lnEMax),
    })),
  );
  if (rows.length === 0) return [];
  const first = firstHours(rows);
  const kept = tx`
    insert into house_audits (
      table_id, hour, seq, rounds, tested, edge_ppm, ln_e, ln_e_max, proven, missing, gaps
    )
    select table_id, hour, seq, rounds, tested, edge_ppm, ln_e, ln_e_max, proven, missing, gaps
    from jsonb_to_recordset(${tx.json(rows)}) as x (
      table_id integer, hour timestamptz, seq bigint, rounds bigint, tested bigint, edge_ppm integer, ln_e bigint,
      ln_e_max bigint, proven bigint, missing bigint, gaps bigint
    )
    order by table_id, hour
    on conflict (table_id, hour) do update
    set
      seq = excluded.seq,
      rounds = excluded.rounds,
      tested = excluded.tested,
      edge_ppm = excluded.edge_ppm,
      ln_e = excluded.ln_e,
      ln_e_max = excluded.ln_e_max,
      proven = excluded.proven,
      missing = excluded.missing,
      gaps = excluded.gaps,
      updated_at = clock_timestamp()`;
  const counted = tx`
    update house_audits a
    set
      conflicts = seen.conflicts,
      -- settled items are deleted after a time, so the count never decreases
      proofs_failed = greatest(a.proofs_failed, seen.proofs_failed)
    from unnest(${[...first.keys()]}::integer[], ${[...first.values()]}::text[]) as touched (table_id, hour)
    join house_audits b on b.table_id = touched.table_id
      and b.hour >= coalesce(
        (select max(hour) from house_audits where table_id = touched.table_id and hour < touched.hour::timestamptz),
        touched.hour::timestamptz
      )
    cross join lateral (${seenOf(tx)}) seen
    where a.table_id = b.table_id
      and a.hour = b.hour
      and (a.conflicts, a.proofs_failed) is distinct from (
        seen.conflicts,
        greatest(a.proofs_failed, seen.proofs_failed)
      )`;
  return [kept, counted];
}

/** The first hour of each table. */
function firstHours(rows: readonly { table_id: number; hour: string }[]): Map<number, string> {
  const first = new Map<number, string>();
  for (const { table_id: tableId, hour } of rows) {
    const known = first.get(tableId);
    if (known === undefined || hour < known) first.set(tableId, hour);
  }
  return first;
}

/** Observations of a table by the end of the hour of row `b` that are not rounds. */
function seenOf(sql: Queryable) {
  return sql`
    select
      (
        select count(*)
        from conflicts c
        where c.table_id = b.table_id
          and c.first_seen_at < b.hour + interval '1 hour'
      ) as conflicts,
      (
        select count(*)
        from quarantine q
        where q.table_id = b.table_id
          and q.code = 'proof_mismatch'
          and q.first_seen_at < b.hour + interval '1 hour'
      ) as proofs_failed`;
}

/** An audit row as it is stored. */
export interface StoredAudit extends AuditRow {
  proofsFailed: number;
  conflicts: number;
  /** Conflicts and failed proofs that were seen by the end of the hour, counted now. */
  conflictsSeen: number;
  proofsFailedSeen: number;
}

/** The audit rows of a table, oldest first. */
export async function listStoredAudits(tx: Queryable, tableId: number): Promise<StoredAudit[]> {
  return tx<StoredAudit[]>`
    select
      utc_text(b.hour) as hour,
      b.seq,
      b.rounds::float8 as rounds,
      b.tested::float8 as tested,
      b.edge_ppm as "edgePpm",
      b.ln_e as "lnE",
      b.ln_e_max as "lnEMax",
      b.proven::float8 as proven,
      b.missing::float8 as missing,
      b.gaps::float8 as gaps,
      b.proofs_failed::float8 as "proofsFailed",
      b.conflicts::float8 as conflicts,
      seen.conflicts::float8 as "conflictsSeen",
      seen.proofs_failed::float8 as "proofsFailedSeen"
    from house_audits b
    cross join lateral (${seenOf(tx)}) seen
    where b.table_id = ${tableId}
    order by b.hour`;
}

/** The current audit of a table, with its rows by hour. */
export interface ListedAudit {
  table: string;
  simulated: boolean;
  /** Number of tables that are checked. */
  tables: number;
  /** Null before the first round. */
  seq: bigint | null;
  rounds: number;
  tested: number;
  edgePpm: number | null;
  /** The first hour by whose end the evidence was enough to reject the declared edge; null if it never was. */
  rejectedHour: string | null;
  proven: number;
  proofsFailed: number;
  missing: number | null;
  gaps: number;
  conflicts: number;
  hours: { hour: string; lnE: bigint; lnEMax: bigint; tested: number }[];
}

/** The `ln_e_max` from which on the declared edge of a table is rejected, as in readings. */
export function rejectedFrom(sql: Queryable) {
  return sql`(select 1e6 * ln(${EVIDENCE_PER_TABLE}::numeric * greatest(count(*), 1)) from tables)`;
}

/** The audits of all tables, or of one, each with its newest `hours` rows. */
export async function listAudits(
  sql: Queryable,
  { tableId, hours }: { tableId?: number | undefined; hours: number },
): Promise<ListedAudit[]> {
  const rows = await sql<(Omit<ListedAudit, "hours"> & { hours: ListedHour[] })[]>`
    select
      t.house_id || '/' || t.game || '/' || t.market as table,
      h.simulated,
      (select count(*) from tables)::integer as tables,
      a.seq,
      coalesce(a.rounds, 0)::float8 as rounds,
      coalesce(a.tested, 0)::float8 as tested,
      a.edge_ppm as "edgePpm",
      -- the maximum never falls: if the newest row is below it, every row is
      case
        when a.ln_e_max >= ${rejectedFrom(sql)} then (
          select utc_text(min(hour))
          from house_audits
          where table_id = t.id
            and ln_e_max >= ${rejectedFrom(sql)}
        )
      end as "rejectedHour",
      coalesce(a.proven, 0)::float8 as proven,
      coalesce(a.proofs_failed, 0)::float8 as "proofsFailed",
      a.missing::float8 as missing,
      coalesce(a.gaps, 0)::float8 as gaps,
      coalesce(a.conflicts, 0)::float8 as conflicts,
      coalesce(past.hours, '[]') as hours
    from tables t
    join houses h on h.id = t.house_id
    left join lateral (
      select *
      from house_audits
      where table_id = t.id
      order by hour desc
      limit 1
    ) a on true
    left join lateral (
      select
        jsonb_agg(
          jsonb_build_object('hour', utc_text(hour), 'lnE', ln_e::text, 'lnEMax', ln_e_max::text, 'tested', tested)
          order by hour
        ) as hours
      from (
        select *
        from house_audits
        where table_id = t.id
        order by hour desc
        limit ${hours}
      ) newest
    ) past on true
    ${tableId === undefined ? sql`` : sql`where t.id = ${tableId}`}
    order by t.house_id, t.position`;
  return rows.map((row) => ({
    ...row,
    hours: row.hours.map((one) => ({ ...one, lnE: BigInt(one.lnE), lnEMax: BigInt(one.lnEMax) })),
  }));
}

type ListedHour = { hour: string; lnE: string; lnEMax: string; tested: number };
