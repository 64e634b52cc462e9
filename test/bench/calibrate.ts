/**
 * A manual calibration over stored real games: reads them from PostgreSQL, replays them with all windows, scores them, and
 * writes checkpoints and the record. The baseline is the model alone on the same games in memory.
 */
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { connect, type Sql } from "../../src/db/client.ts";
import { migrate } from "../../src/db/migrate.ts";
import { emptyState, learn } from "../../src/forecasts/model/k7.ts";
import { requestManualRun } from "../../src/calibration/manual-request.ts";
import { runManualCalibration } from "../../src/calibration/manual-calibration.ts";
import { createModel } from "../../src/forecasts/model/model.ts";
import { K7_1 } from "../../src/forecasts/model/parameters.ts";
import { nextColorOf } from "../../src/forecasts/model/table-model.ts";
import { windowsOf } from "../../src/forecasts/model/windows.ts";
import { multiplierText } from "../../src/rounds/round.ts";
import { colorOf, trueGames } from "../forecasts/true-games.ts";
import { makeTable } from "../support/make.ts";
import { startTestServers } from "../support/servers.ts";
import type { Bench } from "./bench-result.ts";

/** The number of games for which the target is documented. */
const GAMES = 2_729_956;
const ANCHOR = 2_750_000;
const SHORT_GAMES = 40_000;
const SHORT_ANCHOR = 50_000;
const TARGET_RATIO = 0.5;
const COLORS = [0, 1, 2] as const;

export default {
  name: "calibrate",
  about: "rounds per second of a manual calibration over stored rounds, against the model alone",
  async run({ isShort, say }) {
    say("computing the games from their hashes");
    const games = isShort
      ? trueGames(SHORT_ANCHOR, SHORT_ANCHOR).slice(0, SHORT_GAMES)
      : trueGames(ANCHOR, ANCHOR).slice(0, GAMES);
    const { TEST_SERVERS, DATABASE_URL, REDIS_URL } = process.env;
    const servers = await startTestServers(TEST_SERVERS, { databaseUrl: DATABASE_URL, redisUrl: REDIS_URL });
    try {
      await migrate(servers.databaseUrl);
      const sql = connect(servers.databaseUrl, { name: "bench", max: 4 });
      try {
        return await measure(sql, games, { isShort, say });
      } finally {
        await sql.end({ timeout: 5 });
      }
    } finally {
      await servers.stop();
    }
  },
} satisfies Bench;

async function measure(
  sql: Sql,
  games: readonly number[],
  { isShort, say }: { isShort: boolean; say: (line: string) => void },
) {
  const table = await makeTable(sql, { house_edge: 0.01, colors: COLOR_BANDS });
  say(`storing ${games.length} rounds`);
  await store(sql, table.id, games);
  // warm-up: code is compiled while it runs
  runModel(games.slice(0, SHORT_GAMES));
  const baseline = await perSecond(games.length, () => runModel(games));
  say(`model alone: ${Math.round(baseline)} rounds/s`);
  const run = await requestManualRun(sql, {
    tableId: table.id,
    table: table.name,
    from: undefined,
    to: undefined,
    parameters: K7_1,
    thresholds: null,
    outFile: null,
  });
  const ours = await perSecond(games.length, () =>
    runManualCalibration(sql, run, { signal: new AbortController().signal }),
  );
  const [record] = await sql<{ rounds: string; hash: string }[]>`
    select rounds::text, state_hash as hash
    from calibrations
    where kind = 'manual'`;
  if (record?.rounds !== String(games.length))
    throw new Error(`expected a record of ${games.length} rounds, got ${record?.rounds ?? "none"}`);
  return {
    baseline,
    ours,
    unit: "rounds/s",
    results: [
      { what: "model alone, in memory", rounds: games.length, rounds_per_second: Math.round(baseline) },
      { what: "manual calibration, from PostgreSQL", rounds: games.length, rounds_per_second: Math.round(ours) },
    ],
    notes: [`state ${record.hash} after bustabit-v2 games 1 to ${games.length}: equal on every machine`],
    failures: isShort || ours >= TARGET_RATIO * baseline ? [] : [`at least ${TARGET_RATIO} of the model alone`],
  };
}

const COLOR_BANDS = [{ name: "blue", below: 2 }, { name: "purple", below: 10 }, { name: "pink" }];

/** The statement timeout is 30 s. */
const ROUNDS_PER_COPY = 200_000;

/** Uses COPY, since the ingestion of these rounds is not measured. */
async function store(sql: Sql, tableId: number, games: readonly number[]): Promise<void> {
  const [head] = await sql<{ palette: number }[]>`select palette from table_heads where table_id = ${tableId}`;
  const hashOf = (seq: number) => createHash("sha256").update(String(seq)).digest("hex"); // no real chain: nothing verifies these rows
  function* lines(from: number): Generator<string> {
    for (const [index, hundredths] of games.slice(from, from + ROUNDS_PER_COPY).entries()) {
      const seq = from + index + 1;
      const row = [tableId, seq, seq, seq, hundredths, multiplierText(hundredths), head?.palette, colorOf(hundredths)];
      yield `${row.join("\t")}\t3\t2026-01-01 00:00:00Z\tf\tf\t\\\\x${hashOf(seq)}\n`;
    }
  }
  for (let from = 0; from < games.length; from += ROUNDS_PER_COPY) {
    const into = await sql`
      copy rounds (
        table_id, seq, ordinal, round_id, hundredths, raw_value, palette, color, source, received_at, after_gap, late, history_hash
      ) from stdin`.writable();
    await pipeline(Readable.from(lines(from)), into);
  }
  await sql`
    update table_heads
    set
      version = version + 1,
      last_seq = ${games.length},
      last_ordinal = ${games.length},
      newest_seq = ${games.length},
      newest_round_id = ${String(games.length)},
      newest_number = ${games.length},
      history_hash = decode(${hashOf(games.length)}, 'hex')
    where table_id = ${tableId}`;
  await sql`analyze rounds`;
}

function runModel(games: readonly number[]): void {
  const model = createModel({ thresholds: [200, 1000], edge: 0.01 });
  const state = emptyState(model);
  for (const hundredths of games) {
    nextColorOf(model, state);
    for (const color of COLORS) windowsOf(model, state, color);
    learn(model, state, colorOf(hundredths), hundredths >= model.x0Hundredths);
  }
}

async function perSecond(rounds: number, run: () => unknown): Promise<number> {
  const from = performance.now();
  await run();
  return (rounds * 1000) / (performance.now() - from);
}
