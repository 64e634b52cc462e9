import type { Sql } from "../../db/client.ts";
import { statusOf, type Status } from "../../houses/status.ts";

/** A row of `table list`; times are ISO 8601 UTC. */
export interface ListedTable {
  table: string;
  status: Status;
  last_round_at: string | null;
  lag_seconds: number | null;
  rounds: number;
  /** Gaps that are not filled. */
  gaps: number;
  simulated: boolean;
}

/** All tables, by name. */
export async function listTables(sql: Sql, liveWindowSeconds: number): Promise<ListedTable[]> {
  interface Row extends Omit<ListedTable, "status"> {
    newest_polled_age_ms: number | null;
    paused: boolean;
    enabled: boolean;
  }
  const rows = await sql<Row[]>`
    select
      t.house_id || '/' || t.game || '/' || t.market as "table",
      utc_text(d.last_round_at) as last_round_at,
      extract(epoch from clock_timestamp() - d.last_round_at)::float8 as lag_seconds,
      d.last_seq::float8 as rounds,
      (select count(*)::integer from gaps g where g.table_id = t.id and g.state <> 'filled') as gaps,
      h.simulated,
      extract(epoch from clock_timestamp() - max(d.last_polled_round_at) over (partition by t.house_id))::float8 * 1000
        as newest_polled_age_ms,
      h.paused_at is not null as paused,
      h.enabled and t.enabled as enabled
    from tables t
    join table_heads d on d.table_id = t.id
    join houses h on h.id = t.house_id
    order by t.house_id, t.position, t.id`;
  return rows.map(({ newest_polled_age_ms: newestPolledAgeMs, paused, enabled, lag_seconds, ...shown }) => ({
    table: shown.table,
    status: statusOf({ newestPolledAgeMs, paused, enabled }, liveWindowSeconds * 1000),
    last_round_at: shown.last_round_at,
    lag_seconds: lag_seconds === null ? null : Math.max(0, Math.round(lag_seconds * 10) / 10),
    rounds: shown.rounds,
    gaps: shown.gaps,
    simulated: shown.simulated,
  }));
}
