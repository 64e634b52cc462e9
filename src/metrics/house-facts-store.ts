import { joinLiveCalibration } from "../calibration/live-calibration-store.ts";
import type { Transaction } from "../db/client.ts";

/** What PostgreSQL knows of a house; ages are seconds by the database's clock. */
export interface HouseFacts {
  house: string;
  enabled: boolean;
  paused: boolean;
  tables: number;
  /** Since the newest polled round of any of its tables, or since the house was added; null if no table is polled. */
  lag: number | null;
  /** The same of the table that has waited longest. */
  longestLag: number;
  rounds: number;
  forecasts: number;
  /** Rounds that the sums of accuracy do not count yet. */
  unsummed: number;
  readings: number;
  /** Null before the first calibration. */
  newestCalibration: number | null;
  oldestCalibration: number | null;
}

/** The facts of all houses, in the order of their ids. */
export function readHouses(tx: Transaction): Promise<HouseFacts[]> {
  return tx<HouseFacts[]>`
    select
      h.id as house,
      h.enabled,
      h.paused_at is not null as paused,
      count(t.id) filter (where t.enabled)::integer as tables,
      case
        when bool_or(t.enabled)
          then extract(epoch from clock_timestamp() - coalesce(max(d.last_polled_round_at), h.created_at))::float8
      end as lag,
      coalesce(
        extract(epoch from clock_timestamp() - min(coalesce(d.last_polled_round_at, t.created_at)) filter (where t.enabled)),
        0
      )::float8 as "longestLag",
      coalesce(sum(d.last_seq), 0)::float8 as rounds,
      coalesce(sum(d.forecast_seq), 0)::float8 as forecasts,
      coalesce(sum(greatest(d.last_seq - coalesce(m.round_seq, d.set_seq, d.last_seq), 0)), 0)::float8 as unsummed,
      count(r.table_id)::integer as readings,
      extract(epoch from clock_timestamp() - max(c.created_at))::float8 as "newestCalibration",
      extract(epoch from clock_timestamp() - min(c.created_at) filter (where t.enabled))::float8 as "oldestCalibration"
    from houses h
    left join tables t on t.house_id = h.id
    left join table_heads d on d.table_id = t.id
    left join accuracy_marks m on m.table_id = t.id
    left join published_readings r on r.table_id = t.id
    ${joinLiveCalibration(tx)}
    group by h.id
    order by h.id`;
}
