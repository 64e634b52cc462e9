import path from "node:path";
import { connect } from "../../../src/db/client.ts";
import { publishLog } from "../../../src/record/log/publish-log.ts";
import { between, type BenchServers, type Spent } from "./servers.ts";

/**
 * Measures the cost of publishing the transparency log in a number of intervals, in each of which `moved` tables changed.
 * The changes are written by SQL and not measured. A head whose rounds or forecasts are other rows would not be stated.
 */
export async function measureLog(
  servers: BenchServers,
  databaseUrl: string,
  { folder, intervals, moved }: { folder: string; intervals: number; moved: number },
): Promise<{ spent: Spent; seconds: number; entries: number }> {
  const sql = connect(databaseUrl, { name: "bench", max: 2 });
  const publication = { folder: path.join(folder, "ours", "log"), publicUrl: undefined, witnesses: [] };
  const publish = () => publishLog(sql, publication, new AbortController().signal);
  const slices: Spent[] = [];
  let [entries, ms] = [0, 0];
  try {
    await publish();
    for (let interval = 0; interval < intervals; interval++) {
      await sql.begin(async (tx) => {
        await tx`set local session_replication_role = replica`;
        await tx`
          update table_heads
          set version = version + 1, score_hash = sha256(gen_random_uuid()::text::bytea), changed_at = clock_timestamp()
          where table_id in (select id from tables order by id limit ${moved})`;
      });
      const [before, startedAt] = [await servers.spent([process.pid]), performance.now()];
      entries += (await publish()).added;
      ms += performance.now() - startedAt;
      slices.push(between(before, await servers.spent([process.pid])));
    }
  } finally {
    await sql.end({ timeout: 5 });
  }
  if (entries < intervals * moved)
    throw new Error(
      `expected an entry for each of ${moved} tables in ${intervals} intervals, found ${entries} entries`,
    );
  const total = (of: (spent: Spent) => number) => slices.reduce((sum, spent) => sum + of(spent), 0);
  const spent = {
    node: total(({ node }) => node),
    postgres: total(({ postgres }) => postgres),
    redis: total(({ redis }) => redis),
    statements: total(({ statements }) => statements),
    walBytes: total(({ walBytes }) => walBytes),
  };
  return { spent, seconds: ms / 1_000, entries };
}
