import { createWriteStream } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect, type Sql } from "../../src/db/client.ts";
import { migrate } from "../../src/db/migrate.ts";
import { run } from "../../src/embedded/process.ts";
import { verify } from "../../src/forecasts/verify/verify.ts";
import { draw } from "../../src/houses/demo/draw.ts";
import { startMember, type Member } from "../simulate/crew.ts";
import { serveHouses } from "../simulate/house.ts";
import { housesFile } from "../simulate/houses-file.ts";
import { drawTruth, type Truth } from "../simulate/truth.ts";
import { unpackOlder, type OlderBuild } from "./history.ts";
import { watchLocks, type Migrated } from "./locks.ts";
import { listUntrue, readOn, type Read } from "./read.ts";

const ROOT = join(import.meta.dirname, "../..");
const IMPORTED = "old/crash/all";
const PATIENCE_MS = 180_000;
const IMPORT_MS = 3_600_000;

/** How an upgrade is played. */
export interface UpgradeOptions {
  /** Rounds that the older build imports before it is migrated. */
  rounds: number;
  /** `first`, `previous`, or a commit. */
  from: string;
  databaseUrl: string;
  redisUrl: string;
  /** A folder of its own, for the older build and for logs. */
  folder: string;
  say: (line: string) => void;
}

/** What an upgrade came to. */
export interface Upgraded {
  older: { commit: string; migrations: number };
  newer: { migrations: number };
  rounds: number;
  migrations: Migrated[];
  seconds: number;
  /** What the older API answered, from before the migration until the newer workers had scored on its database. */
  read: Pick<Read, "answers" | "longestSilence">;
  /** All that does not hold; empty where the upgrade went well. */
  problems: string[];
}

/**
 * Makes a database with an older build's own commands, lets its API answer a caller, brings the database to the present
 * schema meanwhile, and goes on with present workers and a present API beside the older one.
 * @throws UsageError where the history does not hold the older build
 */
export async function playUpgrade(options: UpgradeOptions): Promise<Upgraded> {
  const { databaseUrl, redisUrl, folder, say } = options;
  const older = await unpackOlder(ROOT, options.from, folder);
  say(`the older build is ${older.commit.slice(0, 7)}, with ${older.migrations.length} migrations`);
  const truth = drawTruth(1, { nowMs: Date.now(), houses: 2, tablesPerHouse: 2 });
  const houses = await serveHouses(truth);
  const sql = connect(databaseUrl, { name: "upgrade", max: 4, use: "bulk" });
  const members: Member[] = [];
  const stopped = new AbortController();
  try {
    const file = join(folder, "houses.yaml");
    await writeFile(file, withImported(truth, houses.url));
    const env = {
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      HOUSES_FILE: file,
      ALLOW_PRIVATE_HOUSES: "1",
      LIVE_WINDOW_SECONDS: "60",
    };
    const begin = async (name: string, args: string[], root: string) => {
      const member = await startMember(name, args, { root, folder, dataFolder: folder, env });
      members.push(member);
      return member;
    };
    const ask = (args: string[], timeoutMs = 60_000) => askOlder(older, args, { env, folder, timeoutMs });

    await ask(["migrate"]);
    const worker = await begin("older-worker", ["worker"], older.root);
    const rows = join(folder, "rounds.csv");
    await writeRounds(rows, options.rounds);
    await ask(["import", "--table", IMPORTED, "--file", rows, "--json"], IMPORT_MS);
    say(`${options.rounds} rounds are imported by the older build`);
    await ask(["account", "create", "ann@example.com"]);
    await ask(["plan", "set", "Max", "--rps", "1000", "--burst", "1000"]); // nobody is to be told to slow down here
    const key = (await ask(["key", "create", "--account", "ann@example.com", "--plan", "Max"])).trim();
    await until("the older workers score", async () => (await countScores(sql)) > 0);
    await worker.stop();

    const api = await begin("older-api", ["api"], older.root);
    const reading = readOn(api.url() ?? "", key, stopped.signal);
    reading.catch(() => undefined); // it is waited for below
    await delay(500);
    const watch = await watchLocks(sql);
    const beganMs = Date.now();
    await migrate(databaseUrl, say);
    const seconds = (Date.now() - beganMs) / 1_000;
    const migrations = await watch.stop();
    say(`migrated in ${seconds.toFixed(1)} s, while the older API answered`);

    const before = await countScores(sql);
    await begin("newer-worker", ["worker"], ROOT);
    const newer = await begin("newer-api", ["api"], ROOT);
    await until("the newer workers score", async () => (await countScores(sql)) > before);
    const newest = await newestRound(sql);
    const later = new AbortController();
    const readLater = readOn(newer.url() ?? "", key, later.signal);
    readLater.catch(() => undefined);
    await Promise.race([reading, delay(3_000)]); // the older one goes on reading what the newer ones write
    stopped.abort();
    later.abort();
    const [read, byNewer] = [await reading, await readLater];

    const problems: string[] = [];
    for (const [who, seen] of [["the older API", read] as const, ["the newer API", byNewer] as const]) {
      for (const name of await listUntrue(sql, seen))
        problems.push(`${who} showed round ${name} otherwise than it is stored`);
      if (seen.answers[200] === 0) problems.push(`${who} answered nothing`);
      if ((seen.newest.get(newest.table) ?? 0) < newest.number) {
        problems.push(`${who} did not show round ${newest.number} of ${newest.table}, which came after the migration`);
      }
    }
    const verified = await verifyAtRest(sql, members);
    if (verified !== null) problems.push(`verify: ${verified}`);
    return {
      older: { commit: older.commit, migrations: older.migrations.length },
      newer: { migrations: (await readdir(join(ROOT, "sql"))).length },
      rounds: options.rounds,
      migrations,
      seconds,
      read: { answers: read.answers, longestSilence: read.longestSilence },
      problems,
    };
  } finally {
    stopped.abort();
    await Promise.all(members.map((member) => member.stop()));
    await houses.close();
    await sql.end({ timeout: 5 });
  }
}

/** Runs a command of the older build and gives what it printed. */
async function askOlder(
  older: OlderBuild,
  args: string[],
  { env, folder, timeoutMs }: { env: Record<string, string>; folder: string; timeoutMs: number },
): Promise<string> {
  const { PATH = "", HOME = "" } = process.env;
  const own = { PATH, HOME, ...env, DATA_DIR: join(folder, "older-commands") };
  const program = {
    command: process.execPath,
    args: [join(older.root, "src/start.js"), ...args],
    env: own,
    cwd: folder,
  };
  const { code, stdout, stderr } = await run(program, { timeoutMs });
  if (code !== 0) throw new Error(`the older build's ${args[0]} ended with ${code}: ${stderr.trim()}`);
  return stdout;
}

async function verifyAtRest(sql: Sql, members: readonly Member[]): Promise<string | null> {
  await Promise.all(members.map((member) => member.stop()));
  const { ok, first_failure: failure } = await verify(sql, {});
  return ok ? null : JSON.stringify(failure);
}

async function countScores(sql: Sql): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*)::integer as n
    from scores`;
  return row?.n ?? 0;
}

async function newestRound(sql: Sql): Promise<{ table: string; number: number }> {
  const [row] = await sql<{ table: string; number: number }[]>`
    select house_id || '/' || game as table, newest_number::float8 as number
    from tables
    where last_polled_round_at is not null
    order by last_polled_round_at desc
    limit 1`;
  if (row === undefined) throw new Error("expected a polled round after the migration, found none");
  return row;
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; !(await isSo()); await delay(250)) {
    if (Date.now() > end) throw new Error(`waited ${PATIENCE_MS / 1_000} s in vain until ${what}`);
  }
}

/** The houses of a simulation, and one that is not polled, for what is imported. */
function withImported(truth: Truth, url: string): string {
  const { houses } = JSON.parse(housesFile(truth, url)) as { houses: { tables: object[] }[] };
  const [house, game, market] = IMPORTED.split("/");
  const like = houses[0];
  const tables = like === undefined ? [] : [{ ...like.tables[0], game, market }];
  return JSON.stringify({ houses: [...houses, { ...like, id: house, name: "Old", enabled: false, tables }] });
}

async function writeRounds(path: string, rounds: number): Promise<void> {
  const file = createWriteStream(path);
  file.write("round_id,multiplier\n");
  for (let n = 1; n <= rounds; n++) {
    const multiplier = Math.max(100, Math.floor(99 / (1 - draw(1, "imported", n)))) / 100;
    if (!file.write(`${n},${multiplier.toFixed(2)}\n`)) await once(file, "drain");
  }
  file.end();
  await once(file, "finish");
}
