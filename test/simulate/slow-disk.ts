import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../../src/db/client.ts";

const COMMIT_MS = 400;
const BETWEEN_MS = 100;

/**
 * Makes every commit wait until `release`, as on a disk that does not write: locks stay held and changes stay invisible,
 * because PostgreSQL waits for a standby that does not exist.
 */
export async function stallCommits(sql: Sql): Promise<{ release(): Promise<void> }> {
  await sql`alter system set synchronous_standby_names = 'missing'`;
  await sql`select pg_reload_conf()`;
  return {
    async release() {
      await sql`alter system reset synchronous_standby_names`;
      await sql`select pg_reload_conf()`;
    },
  };
}

/** Makes every commit take up to 0.4 s for `forMs`. */
export async function slowDisk(sql: Sql, forMs: number): Promise<void> {
  for (const end = Date.now() + forMs; Date.now() < end; await delay(BETWEEN_MS)) {
    const stall = await stallCommits(sql);
    await delay(COMMIT_MS);
    await stall.release();
  }
}
