// Runs the baseline of `bench pipeline`. Usage: node straightforward-pipeline-process.ts DATABASE_URL REDIS_URL HOUSE_URL
// statement|round; sends "ready", and exits with its parent.
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { connect } from "../../../src/db/client.ts";
import { pathOf } from "./house.ts";
import { newestRound, processRound, type QueuedRound } from "./straightforward-pipeline.ts";

const [databaseUrl = "", redisUrl = "", houseUrl = "", commit = ""] = process.argv.slice(2);
/** Parallel requests to one house, as in Roundhouse. */
const PARALLEL = 8;
/** Rounds in parallel; on two cores more of them only wait for each other. */
const CONCURRENCY = 20;

const sql = connect(databaseUrl, { name: "straightforward", max: CONCURRENCY });
const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
const kept = { removeOnComplete: true, removeOnFail: 1_000 };
const rounds = new Queue<QueuedRound>("plain-round", { connection });

// a stopped process leaves jobs that would run out of order; the next poll adds the rounds that are not stored
await rounds.obliterate({ force: true });

/** The newest queued round by table, so that the next poll does not add rounds twice. */
const queued = new Map<number, number>();
/** The last promise of each table: its rounds are processed one after another. */
const lines = new Map<number, Promise<void>>();

async function pollTable(table: number): Promise<void> {
  const requestedMs = Date.now();
  const response = await fetch(`${houseUrl}${pathOf(table)}`);
  const body = (await response.json()) as { rounds: { id: number; multiplier: number }[] };
  const stored = await newestRound(sql, table);
  const known = Math.max(stored, queued.get(table) ?? 0);
  const fresh = body.rounds.filter(({ id }) => id > known).toReversed();
  const newest = fresh.at(-1)?.id;
  if (newest === undefined) return;
  queued.set(table, newest);
  for (const { id: roundId, multiplier } of fresh) {
    const mayForecast = roundId === newest && known > 0;
    await rounds.add("round", { table, roundId, multiplier, requestedMs, mayForecast }, kept);
  }
}

async function runInOrder(table: number, work: () => Promise<void>): Promise<void> {
  const last = (lines.get(table) ?? Promise.resolve()).then(work);
  lines.set(
    table,
    last.catch(() => undefined),
  );
  return last;
}

const poller = new Worker<{ table: number }>("plain-poll", async ({ data }) => pollTable(data.table), {
  connection,
  concurrency: PARALLEL,
});
const taker = new Worker<QueuedRound>(
  rounds.name,
  async ({ data }) =>
    runInOrder(data.table, async () => {
      if (commit === "round") await sql.begin((tx) => processRound(tx, data));
      else await processRound(sql, data);
    }),
  { connection, concurrency: CONCURRENCY },
);
for (const worker of [poller, taker]) {
  worker.on("failed", (_, error) => process.stderr.write(`the baseline failed: ${error.stack ?? error.message}\n`));
  worker.on("error", (error) => process.stderr.write(`the baseline: ${error.message}\n`));
}
await Promise.all([poller.waitUntilReady(), taker.waitUntilReady()]);
process.once("disconnect", () => process.exit());
process.send?.("ready");
