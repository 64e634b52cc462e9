/**
 * The `verify` command over a complete record, in its own process: rounds with their forecast sets and scores, accuracy, and
 * the transparency log with a statement about every table at intervals. The record is written by passes, as by polls. There
 * is no baseline: the target is in seconds per million rounds, with memory that does not grow.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import { addAccuracy } from "../../src/forecasts/accuracy/add-accuracy.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { migrate } from "../../src/db/migrate.ts";
import { draw } from "../../src/demo/draw.ts";
import type { PassState } from "../../src/pass/compute/state.ts";
import { publishLog } from "../../src/record/log/publish-log.ts";
import { tableEntry } from "../support/houses.ts";
import { makeHouse } from "../support/make.ts";
import { givePasses, timesFrom } from "../support/passes.ts";
import { startTestServers } from "../support/servers.ts";
import type { Bench } from "./bench-result.ts";

const FULL = { tables: 4, sizes: [50_000, 200_000] };
const SHORT = { tables: 2, sizes: [400, 800] };
/** The log has a statement about every table after this many rounds of each. */
const ROUNDS_PER_STATEMENT = 500;
const ROUND_MS = 10_000;
const TARGET_SECONDS_PER_MILLION = 60;
const MAX_GROWTH = 1.25;
const CHECK_EVERY_MS = 50;
const START = path.join(import.meta.dirname, "../../src/start.js");

export default {
  name: "verify",
  about: "seconds of `verify` for a million rounds with their forecasts, scores and log, and its memory",
  async run({ isShort, directory, say }) {
    const { tables, sizes } = isShort ? SHORT : FULL;
    const { TEST_SERVERS, DATABASE_URL, REDIS_URL } = process.env;
    const servers = await startTestServers(TEST_SERVERS, { databaseUrl: DATABASE_URL, redisUrl: REDIS_URL });
    try {
      await migrate(servers.databaseUrl);
      const sql = connect(servers.databaseUrl, { name: "bench", max: tables + 1, use: "bulk" });
      try {
        mkdirSync(directory, { recursive: true });
        const folder = mkdtempSync(path.join(directory, "verify-"));
        const record = await beginRecord(sql, tables, folder);
        const results = [];
        for (const size of sizes) {
          say(`making ${size} rounds`);
          await record.growTo(size / tables);
          say("verifying them");
          results.push({ rounds: size, ...(await verifyAll(servers.databaseUrl, directory)) });
        }
        rmSync(folder, { recursive: true });
        const [least, most] = [results[0], results.at(-1)];
        const perMillion = Number(((1e6 * (most?.seconds ?? 0)) / (most?.rounds ?? 1)).toFixed(1));
        const growth = (most?.peak_mb ?? 0) / (least?.peak_mb ?? 1);
        return {
          baseline: TARGET_SECONDS_PER_MILLION,
          ours: perMillion,
          unit: "s per million rounds",
          results,
          notes: ["seconds include the start of the command; memory is that of its process"],
          failures: isShort
            ? []
            : [
                ...(perMillion > TARGET_SECONDS_PER_MILLION
                  ? [`${TARGET_SECONDS_PER_MILLION} s per million rounds, got ${perMillion}`]
                  : []),
                ...(growth > MAX_GROWTH
                  ? [
                      `memory that does not grow, got ${growth.toFixed(2)} × for ${(most?.rounds ?? 0) / (least?.rounds ?? 1)} × the rounds`,
                    ]
                  : []),
              ],
        };
      } finally {
        await sql.end({ timeout: 5 });
      }
    } finally {
      await servers.stop();
    }
  },
} satisfies Bench;

/** Creates tables without rounds, and a function that adds rounds. */
async function beginRecord(sql: Sql, count: number, folder: string) {
  const made = await makeHouse(sql, {
    tables: Array.from({ length: count }, (_, n) =>
      tableEntry({ market: `m${n}`, house_edge: 0.01, pause_ms: 60_000 }),
    ),
  });
  const states = new Map<number, PassState>();
  const startMs = Date.now() - 30 * 86_400_000;
  let rounds = 0;
  return {
    /** Adds rounds until each table has `size`. */
    async growTo(size: number): Promise<void> {
      while (rounds < size) {
        const next = Array.from({ length: Math.min(ROUNDS_PER_STATEMENT, size - rounds) }, (_, n) => rounds + n + 1);
        await Promise.all(
          made.map(async ({ id }) => {
            const from = states.get(id);
            const played = next.map((n) => Math.max(100, Math.floor(99 / (1 - draw(1, `verify ${id}`, n)))));
            const times = timesFrom(startMs + rounds * ROUND_MS, ROUND_MS);
            states.set(id, await givePasses(sql, { id }, played, { times, ...(from === undefined ? {} : { from }) }));
          }),
        );
        rounds += next.length;
        await addAccuracy(sql, [...states.keys()], new AbortController().signal);
        await publishLog(sql, { folder, publicUrl: undefined, witnesses: [] }, new AbortController().signal);
      }
    },
  };
}

async function verifyAll(databaseUrl: string, directory: string) {
  const { PATH = "", HOME = "" } = process.env;
  const startedAt = performance.now();
  const child = spawn(process.execPath, [START, "verify", "--json"], {
    env: { PATH, HOME, DATABASE_URL: databaseUrl, REDIS_URL: "redis://127.0.0.1:1", DATA_DIR: directory },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let peakKb = 0;
  const watch = setInterval(() => (peakKb = Math.max(peakKb, peakOf(child.pid ?? 0))), CHECK_EVERY_MS);
  try {
    const [out, [code]] = await Promise.all([child.stdout.toArray(), once(child, "exit") as Promise<[number]>]);
    const text = Buffer.concat(out as Buffer[]).toString();
    if (code !== 0) throw new Error(`expected verify to exit with code 0, got ${code}: ${text}`);
    const seconds = Number(((performance.now() - startedAt) / 1_000).toFixed(1));
    return { seconds, peak_mb: Math.round(peakKb / 1024), ...checkedSchema.parse(JSON.parse(text)).checked };
  } finally {
    clearInterval(watch);
  }
}

const checkedSchema = z.object({
  checked: z.object({ forecasts: z.number(), scores: z.number(), log_entries: z.number() }),
});

/** The peak memory of a process in kB; 0 if it has exited. */
function peakOf(pid: number): number {
  try {
    return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
