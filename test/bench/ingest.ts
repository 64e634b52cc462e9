/**
 * Answers of a house that wait, made into stored and proven rounds by normalize-rounds: read, checked against the chain
 * of hashes, given their place and their history hash. The baseline is COPY of the very same rows into an empty table of
 * the same columns, checks and indexes.
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
import { copyAgain, timed } from "./copy-rounds.ts";
import type { Bench } from "./bench-result.ts";

const ROUNDS = 200_000;
const SHORT_ROUNDS = 5_000;
/** Rounds that are there before: a table that PostgreSQL has no statistics of is another matter. */
const BEFORE = 10_000;
/** Rounds in one answer, none of which is in another. */
const IN_ONE = 50;
const PROMISED_RATIO = 0.5;

export default {
  name: "ingest",
  about: "rounds a second from stored answers to stored, proven rounds, against COPY of the same rows",
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
  say(`storing ${rounds / IN_ONE} answers of ${IN_ONE} true games each`);
  const games = createTrueChain(new AbortController().signal);
  const ingest = () => normalizeRounds.run({ house: table.house }, testContext(sql, { passes }).context);
  for (let oldest = 1; oldest <= BEFORE + rounds; oldest += IN_ONE) {
    if (oldest === BEFORE + 1) {
      await ingest();
      await sql`vacuum analyze`;
    }
    const listed = await games({ newest: oldest + IN_ONE - 1, oldest });
    const items = listed.map(({ id, hash, hundredths }) => ({ id, multiplier: hundredths / 100, hash }));
    await makePayload(sql, table, { body: JSON.stringify({ rounds: items }), second: (oldest - 1) / IN_ONE });
  }
  await sql`vacuum analyze payloads`;
  say("reading them");
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
  const again = await copyAgain(sql, table.id);
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
    notes: ["every round is proven by the chain of hashes, and hashed with all before it"],
    failures:
      !isShort && ours < PROMISED_RATIO * baseline
        ? [`${PROMISED_RATIO} × COPY, got ${(ours / baseline).toFixed(2)}`]
        : [],
  };
}
