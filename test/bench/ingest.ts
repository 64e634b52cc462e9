/**
 * Pending payloads of a house become stored and proven rounds by normalize-rounds: parsing, proof by the hash chain,
 * placement, history hashes. The baseline is COPY of the same rows into an empty table with the same columns, checks and
 * indexes.
 */
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import { connect, openPipeline, type Sql } from "../../src/db/client.ts";
import { migrate } from "../../src/db/migrate.ts";
import { SALT, TERMINATING_HASH } from "../../src/demo/bustabit-v2.ts";
import { createTrueChain } from "../../src/demo/true-chain.ts";
import { createPasses, type Passes } from "../../src/pass/passes.ts";
import { testContext } from "../support/context.ts";
import { feedEntry } from "../support/houses.ts";
import { makePayload, makeTable } from "../support/make.ts";
import { startTestServers } from "../support/servers.ts";
import { copyRounds, timed } from "./copy-rounds.ts";
import type { Bench } from "./bench-result.ts";

const ROUNDS = 1_000_000;
const SHORT_ROUNDS = 5_000;
/** Rounds that are stored before, so that PostgreSQL has statistics of the table. */
const BEFORE = 10_000;
/** Responses do not overlap. */
const ROUNDS_PER_RESPONSE = 50;
const TARGET_RATIO = 0.5;

export default {
  name: "ingest",
  about: "rounds per second from stored payloads to stored, proven rounds, against COPY of the same rows",
  async run({ isShort, say }) {
    const { TEST_SERVERS, DATABASE_URL, REDIS_URL } = process.env;
    const servers = await startTestServers(TEST_SERVERS, { databaseUrl: DATABASE_URL, redisUrl: REDIS_URL });
    try {
      await migrate(servers.databaseUrl);
      const sql = connect(servers.databaseUrl, { name: "bench", max: 4, use: "bulk" });
      const pipeline = openPipeline(servers.databaseUrl, { name: "bench" });
      try {
        const passes = createPasses(pipeline);
        return await measure({ sql, passes }, isShort ? SHORT_ROUNDS : ROUNDS, { isShort, say });
      } finally {
        await pipeline.end();
        await sql.end({ timeout: 5 });
      }
    } finally {
      await servers.stop();
    }
  },
} satisfies Bench;

async function measure(
  { sql, passes }: { sql: Sql; passes: Passes },
  rounds: number,
  { isShort, say }: { isShort: boolean; say: (line: string) => void },
) {
  const table = await makeTable(sql, {
    feed: feedEntry({ hash: "hash" }),
    fairness: { scheme: "bustabit", salt: SALT, terminating_hash: TERMINATING_HASH },
  });
  say(`storing ${rounds / ROUNDS_PER_RESPONSE} payloads of ${ROUNDS_PER_RESPONSE} real games each`);
  const games = createTrueChain(new AbortController().signal);
  const ingest = () => normalizeRounds.run({ house: table.house }, testContext(sql, { passes }).context);
  for (let oldest = 1; oldest <= BEFORE + rounds; oldest += ROUNDS_PER_RESPONSE) {
    if (oldest === BEFORE + 1) {
      await ingest();
      await sql`vacuum analyze`;
    }
    const listed = await games({ newest: oldest + ROUNDS_PER_RESPONSE - 1, oldest });
    const items = listed.map(({ id, hash, hundredths }) => ({ id, multiplier: hundredths / 100, hash }));
    await makePayload(sql, table, {
      body: JSON.stringify({ rounds: items }),
      second: (oldest - 1) / ROUNDS_PER_RESPONSE,
    });
  }
  await sql`vacuum analyze payloads`;
  say("normalizing them");
  const oursMs = await timed(ingest);
  const [stored] = await sql<{ n: number; verified: number }[]>`
    select count(*)::integer as n, count(*) filter (where verified)::integer as verified
    from rounds
    where table_id = ${table.id}`;
  const all = BEFORE + rounds;
  if (stored?.n !== all || stored.verified !== all) {
    throw new Error(`expected ${all} proven rounds, got ${stored?.n} with ${stored?.verified} proven`);
  }
  say("the same rows by COPY");
  const again = await copyRounds(sql, table.id);
  const copyMs = (again.ms * rounds) / again.copied;
  const [ours, baseline] = [(rounds / oursMs) * 1_000, (rounds / copyMs) * 1_000];
  const row = (what: string, perSecond: number, ms: number) => ({
    what,
    rounds,
    rounds_per_second: Math.round(perSecond),
    microseconds_per_round: Math.round((ms * 1_000) / rounds),
    ratio: Math.round((perSecond / baseline) * 100) / 100,
  });
  return {
    baseline,
    ours,
    unit: "rounds/s",
    results: [row("COPY of the same rows", baseline, copyMs), row("normalize-rounds", ours, oursMs)],
    notes: ["every round is proven by the hash chain and has a history hash"],
    failures:
      !isShort && ours < TARGET_RATIO * baseline ? [`${TARGET_RATIO} × COPY, got ${(ours / baseline).toFixed(2)}`] : [],
  };
}
