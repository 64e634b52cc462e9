/**
 * The import of a file of history by `roundhouse import`, in its own process: parsing, checks, order, placement, history
 * hashes and storage. The baseline is COPY of the same rows, already in that order, into an empty table with the same
 * columns, checks and indexes.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import path from "node:path";
import { connect } from "../../src/db/client.ts";
import { migrate } from "../../src/db/migrate.ts";
import { draw } from "../../src/demo/draw.ts";
import { makeTable } from "../support/make.ts";
import { startTestServers } from "../support/servers.ts";
import { copyRounds, timed } from "./copy-rounds.ts";
import type { Bench } from "./bench-result.ts";

const ROUNDS = 1_000_000;
const SHORT_ROUNDS = 10_000;
const TARGET_RATIO = 0.55;
const START = path.join(import.meta.dirname, "../../src/start.js");

export default {
  name: "import",
  about: "rows per second of the import of a CSV file, against COPY of the same rows",
  async run({ isShort, directory, say }) {
    const rounds = isShort ? SHORT_ROUNDS : ROUNDS;
    const { TEST_SERVERS, DATABASE_URL, REDIS_URL } = process.env;
    const servers = await startTestServers(TEST_SERVERS, { databaseUrl: DATABASE_URL, redisUrl: REDIS_URL });
    try {
      await migrate(servers.databaseUrl);
      const sql = connect(servers.databaseUrl, { name: "bench", max: 2, use: "bulk" });
      try {
        const table = await makeTable(sql, { house_edge: 0.01 });
        const file = path.join(directory, "import.csv");
        say(`writing ${rounds} rows`);
        await writeFile(file, rounds);
        say("importing them");
        const oursMs = await timed(() => runImport(table.name, file, servers.databaseUrl, directory));
        say("the same rows by COPY");
        const { copied, ms: copyMs } = await copyRounds(sql, table.id);
        if (copied !== rounds) throw new Error(`expected ${rounds} rounds to be stored, got ${copied}`);
        const [ours, baseline] = [(rounds / oursMs) * 1_000, (rounds / copyMs) * 1_000];
        const row = (what: string, perSecond: number, ms: number) => ({
          what,
          rows: rounds,
          seconds: Math.round(ms / 100) / 10,
          rows_per_second: Math.round(perSecond),
          ratio: Math.round((perSecond / baseline) * 100) / 100,
        });
        return {
          baseline,
          ours,
          unit: "rows/s",
          results: [row("COPY of the same rows", baseline, copyMs), row("roundhouse import", ours, oursMs)],
          notes: ["the time includes the start of the command; the model learns the rounds as they are stored"],
          failures:
            !isShort && ours < TARGET_RATIO * baseline
              ? [`${TARGET_RATIO} × COPY, got ${(ours / baseline).toFixed(2)}`]
              : [],
        };
      } finally {
        await sql.end({ timeout: 5 });
      }
    } finally {
      await servers.stop();
    }
  },
} satisfies Bench;

async function writeFile(file: string, rounds: number): Promise<void> {
  const stream = createWriteStream(file);
  stream.write("round_id,multiplier\n");
  for (let id = 1; id <= rounds; id++) {
    const multiplier = Math.max(1, Math.floor(99 / (1 - draw(1, "import", id))) / 100);
    if (!stream.write(`${id},${multiplier.toFixed(2)}\n`)) await once(stream, "drain");
  }
  stream.end();
  await once(stream, "close");
}

async function runImport(table: string, file: string, databaseUrl: string, directory: string): Promise<void> {
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(process.execPath, [START, "import", "--table", table, "--file", file, "--json"], {
    env: { PATH, HOME, DATABASE_URL: databaseUrl, DATA_DIR: directory },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`expected import to exit with code 0, got ${code}`);
}
