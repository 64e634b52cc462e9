import type { Sql } from "../../src/db/client.ts";

/** Postpones the next probe of a house by an hour, so that its circuit does not close by itself; false if it is not open. */
export async function postponeProbe(sql: Sql, house: string): Promise<boolean> {
  const { count } = await sql`
    update poll_leases
    set next_allowed_at = now() + interval '1 hour'
    where house_id = ${house}
      and circuit = 'open'`;
  return count > 0;
}
