import type { Queryable } from "../../db/client.ts";

/** When a shard of a house was really polled last, and whether it was to be left alone. */
export interface LastPoll {
  /** As the schedule names it: `bustabit/0`. */
  key: string;
  at: Date | null;
  leftAloneUntil: Date | null;
}

/** The newest poll of every shard of every house, as PostgreSQL has it. */
export async function listLastPolls(sql: Queryable): Promise<LastPoll[]> {
  return sql<LastPoll[]>`
    select
      house_id || '/' || shard as key,
      last_poll_at as at,
      case when next_allowed_at > clock_timestamp() then next_allowed_at end as "leftAloneUntil"
    from poll_leases`;
}
