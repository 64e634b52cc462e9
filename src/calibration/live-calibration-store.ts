import type { Queryable } from "../db/client.ts";

/** Joins as `c` the newest calibration of a table `t` that equals the live state of its head `d`, with version and time. */
export function joinLiveCalibration(sql: Queryable) {
  return sql`
    left join lateral (
      select version, created_at
      from calibrations
      where table_id = t.id
        and model = d.model
        and kind <> 'manual'
        and live_state_hash = state_hash
      order by version desc
      limit 1
    ) c on true`;
}
