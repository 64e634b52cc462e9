import type { Queryable } from "../../db/client.ts";

/** The last poll of a shard of a house. */
export interface LastPoll {
  /** The key of its schedule: `bustabit/0`. */
  key: string;
  at: Date | null;
  /** Until when the house is not polled, after a refusal or an open circuit; null if it may be polled now. */
  pausedUntil: Date | null;
}

/** Lists the last poll of every shard of every house. */
export async function listLastPolls(sql: Queryable): Promise<LastPoll[]> {
  return sql<LastPoll[]>`
    select
      house_id || '/' || shard as key,
      last_poll_at as at,
      case when next_allowed_at > clock_timestamp() then next_allowed_at end as "pausedUntil"
    from poll_leases`;
}
