import { createWriteStream } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createAccount, createKey } from "../../src/callers/store.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import type * as Migrate from "../../src/db/migrate.ts";
import { reasonOf } from "../../src/errors.ts";
import { verify } from "../../src/forecasts/verify.ts";
import { call, type Caller } from "./callers.ts";
import { startMember, type Member } from "./crew.ts";
import { drawFaults, make, type FaultKind } from "./faults.ts";
import { serveHouses } from "./house.ts";
import { Broken, checkAlways, checkCounts, listMissing } from "./invariants.ts";
import { startSimulatedServers } from "./servers.ts";
import { drawAllTroubles, drawTruth, PAUSE_MS, type Truth } from "./truth.ts";

/** How a simulated day is made. */
export interface DayOptions {
  seed: number;
  /** How long houses and faults go on; what follows is quiet, until all that can be fetched is there. */
  lastsMs: number;
  houses: number;
  tablesPerHouse: number;
  workers: number;
  apis: number;
  /** A fault of servers or processes every so often. */
  faultEveryMs: number;
  /** The checkout that is run. */
  root: string;
  say: (line: string) => void;
}

/** What a day came to. */
export interface Day {
  /** Null where every invariant held. */
  broken: string | null;
  rounds: number;
  forecasts: number;
  scores: number;
  calls: number;
  refused: Record<string, number>;
  /** Seconds from the end of each fault until every house that is not in trouble itself brought a round again. */
  recoveries: { kind: FaultKind; seconds: number | null }[];
  /** Resident megabytes of each process, a quarter into it and at its end. */
  memory: { name: string; quarter: number; end: number }[];
  /** What happened, in order: for whoever looks for the cause. */
  history: string[];
  /** Where its logs and data are; null where it was taken away, since all held. */
  folder: string | null;
}

const QUIET_MS = 120_000;
const QUOTA = 60;

/** Plays one day and checks it; all that happens is drawn from the seed, though not to the millisecond when it is met. */
export async function playDay(options: DayOptions): Promise<Day> {
  const { seed, lastsMs, root, say } = options;
  const folder = await mkdtemp(join(tmpdir(), `roundhouse-simulate-${seed}-`));
  const history: string[] = [];
  const startMs = Date.now();
  const note = (text: string) => {
    const line = `${((Date.now() - startMs) / 1_000).toFixed(1).padStart(7)} s  ${text}`;
    history.push(line);
    say(line);
  };
  const serversFolder = join(folder, "servers");
  await mkdir(serversFolder, { mode: 0o711 });
  const servers = await startSimulatedServers(serversFolder, join(homedir(), ".cache", "roundhouse"), (line) =>
    note(line),
  );
  const crew: Member[] = [];
  const ended = new AbortController();
  const day: Day = {
    broken: null,
    rounds: 0,
    forecasts: 0,
    scores: 0,
    calls: 0,
    refused: {},
    recoveries: [],
    memory: [],
    history,
    folder,
  };
  let houses: Awaited<ReturnType<typeof serveHouses>> | undefined;
  try {
    const { sql } = servers;
    // the schema of the build that is run, which may have a fault planted in it
    const { migrate } = (await import(join(root, "src/db/migrate.ts"))) as typeof Migrate;
    await migrate(servers.databaseUrl);
    const truth = drawTruth(seed, { ...options, nowMs: Date.now() });
    houses = await serveHouses(truth);
    const housesFile = join(folder, "houses.yaml");
    await writeFile(housesFile, JSON.stringify({ houses: entriesOf(truth, houses.url) }));
    const env = {
      DATABASE_URL: servers.databaseUrl,
      REDIS_URL: servers.redisUrl,
      HOUSES_FILE: housesFile,
      ALLOW_PRIVATE_HOUSES: "1",
      LIVE_WINDOW_SECONDS: "60",
      LOG_LEVEL: "info",
    };
    const begin = (name: string, n: number) => startMember(`${name}-${n}`, [name], { root, folder, env });
    const workers = await Promise.all(Array.from({ length: options.workers }, (_, n) => begin("worker", n)));
    crew.push(...workers);
    const apis = await Promise.all(Array.from({ length: options.apis }, (_, n) => begin("api", n)));
    crew.push(...apis);
    note(`${truth.tables.length} tables, ${workers.length} workers and ${apis.length} APIs are up`);
    drawAllTroubles(truth, Date.now(), lastsMs);
    const second = (atMs: number) => ((atMs - startMs) / 1_000).toFixed(1);
    for (const [house, troubles] of truth.troubles) {
      for (const { kind, fromMs, toMs } of troubles) {
        history.push(`planned: ${house} ${kind} from ${second(fromMs)} s to ${second(toMs)} s`);
      }
    }
    const callers = await makeCallers(sql);
    const calling = callers.map((caller, n) =>
      call(caller, { truth, apis, pauseMs: n === 0 ? 60 : 300, signal: ended.signal }),
    );
    const broke = Promise.race(calling).then(() => new Promise<never>(() => undefined));
    broke.catch(() => undefined); // whoever waits for it hears of it
    await Promise.race([broke, goThrough({ ...options, truth, day, servers, workers, apis, crew, note })]);
    ended.abort();
    await Promise.all(calling);
    note("quiet: what can be fetched again is fetched");
    await settle(sql, truth);
    note("all that its houses still list is stored; everything is computed again");
    Object.assign(day, await checkAlways(sql, truth));
    await checkCounts(sql, callers);
    await checkRecomputed(servers.databaseUrl, day);
    for (const caller of callers) {
      day.calls += caller.answered;
      for (const [code, n] of caller.refused) day.refused[code] = (day.refused[code] ?? 0) + n;
    }
    if (callers[1]?.answered !== undefined && callers[1].answered > QUOTA) {
      throw new Broken(`a caller with a quota of ${QUOTA} got ${callers[1].answered} answers`);
    }
    for (const member of crew.splice(0)) {
      const code = await member.stop();
      if (code !== 0) throw new Broken(`${member.name} did not stop in order: exit code ${code}`);
    }
    if (lastsMs > 0 && day.rounds === 0) throw new Broken("nothing was taken in at all");
  } catch (error) {
    day.broken = error instanceof Broken ? error.message : reasonOf(error);
    note(`broken: ${day.broken}`);
  } finally {
    ended.abort();
    await Promise.all(crew.map((member) => member.stop()));
    await houses?.close();
    await servers.stop();
    if (day.broken === null) {
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
      day.folder = null;
    } else {
      const file = createWriteStream(join(folder, "history.txt"));
      file.end(history.map((line) => `${line}\n`).join(""));
    }
  }
  return day;
}

interface Going extends Omit<DayOptions, "workers" | "apis"> {
  truth: Truth;
  day: Day;
  servers: Awaited<ReturnType<typeof startSimulatedServers>>;
  workers: readonly Member[];
  apis: readonly Member[];
  crew: readonly Member[];
  note: (text: string) => void;
}

/** Faults one after another, with looks at the invariants between them. */
async function goThrough({ seed, faultEveryMs, truth, day, servers, workers, apis, crew, note }: Going): Promise<void> {
  const faults = drawFaults(seed, truth.endMs - truth.startMs, faultEveryMs);
  const quarter = truth.startMs + (truth.endMs - truth.startMs) / 4;
  const memory = new Map<string, { quarter: number; end: number }>();
  for (const fault of [...faults, null]) {
    const atMs = fault === null ? truth.endMs : truth.startMs + fault.atMs;
    while (Date.now() < atMs) {
      await delay(Math.min(2_000, Math.max(1, atMs - Date.now())));
      await checkAlways(servers.sql, truth);
      for (const { name, residentBytes } of crew) {
        const megabytes = Math.round((residentBytes() ?? 0) / 1e6);
        if (megabytes === 0) continue;
        const known = memory.get(name) ?? { quarter: megabytes, end: megabytes };
        memory.set(name, { quarter: Date.now() < quarter ? megabytes : known.quarter, end: megabytes });
      }
    }
    if (fault === null) break;
    note(fault.kind);
    await make(fault, { seed, servers, workers, apis });
    const seconds = fault.kind === "kill api" ? null : await recovery(servers.sql, truth, 60_000);
    if (fault.kind !== "kill api") {
      day.recoveries.push({ kind: fault.kind, seconds });
      if (seconds === null) throw new Broken(`60 s after "${fault.kind}" not all houses bring rounds again`);
      note(`  rounds again ${seconds.toFixed(1)} s after its end`);
    }
  }
  day.memory.push(...[...memory].map(([name, sizes]) => ({ name, ...sizes })));
}

/** How long it takes until every house brought a round that was asked for after now; those in trouble are not waited for. */
async function recovery(sql: Sql, truth: Truth, patienceMs: number): Promise<number | null> {
  const fromMs = Date.now();
  while (Date.now() < fromMs + patienceMs) {
    const lively = [...truth.troubles]
      .filter(
        ([, troubles]) =>
          !troubles.some(({ fromMs: from, toMs }) => from - 3_000 < Date.now() && Date.now() < toMs + 6_000),
      )
      .map(([house]) => house);
    const rows = await sql<{ house: string; at: number | null }[]>`
      select h.id as house, extract(epoch from max(t.last_polled_round_at))::float8 * 1000 as at
      from houses h
      join tables t on t.house_id = h.id
      group by h.id`;
    const at = new Map(rows.map((row) => [row.house, row.at ?? 0]));
    if (lively.length > 0 && lively.every((house) => (at.get(house) ?? 0) > fromMs))
      return (Date.now() - fromMs) / 1_000;
    await delay(100);
  }
  return null;
}

/** Waits until every round that can be had is stored, gaps are closed and every forecast that can be scored is. */
async function settle(sql: Sql, truth: Truth): Promise<void> {
  const untilMs = truth.endMs;
  const deadline = Date.now() + QUIET_MS;
  let missing: string[] = [];
  do {
    await delay(1_000);
    missing = await listMissing(sql, truth, untilMs);
    const [open] = await sql<{ n: number }[]>`
      select count(*)::integer as n
      from gaps
      where state = 'open' and attempts = 0`;
    if (missing.length === 0 && open?.n === 0) return;
  } while (Date.now() < deadline);
  const shown = missing.slice(0, 5).join(", ");
  throw new Broken(`${missing.length} rounds that their house still lists are not stored: ${shown}`);
}

/** Accuracy, scores and chains against a recomputation, as `roundhouse verify` does it. */
async function checkRecomputed(databaseUrl: string, day: Day): Promise<void> {
  const sql = connect(databaseUrl, { name: "verify", max: 2, patient: true });
  try {
    // houses play on, and a score may be on its way
    for (let attempt = 0; ; attempt++) {
      const { ok, checked, first_failure: failure } = await verify(sql, {});
      day.scores = checked.scores;
      if (ok) return;
      if (attempt === 3) throw new Broken(`verify: ${JSON.stringify(failure)}`);
      await delay(2_000);
    }
  } finally {
    await sql.end({ timeout: 5 });
  }
}

async function makeCallers(sql: Sql): Promise<Caller[]> {
  await sql`update plans set day_limit = ${QUOTA} where name = 'Starter'`;
  const made: Caller[] = [];
  for (const [email, plan] of [
    ["max@example.com", "Max"],
    ["starter@example.com", "Starter"],
    ["pro@example.com", "Pro"],
  ] as const) {
    await createAccount(sql, email);
    const key = await createKey(sql, { email, plan });
    if (!key.ok) throw new Error(key.reason);
    made.push({ email, key: key.key, answered: 0, unanswered: 0, refused: new Map() });
  }
  return made;
}

/** The houses file of a simulation. */
function entriesOf(truth: Truth, url: string): object[] {
  return [...truth.troubles.keys()].map((house) => ({
    id: house,
    name: `House ${house}`,
    base_url: url,
    private: true,
    poll_every_ms: 200,
    timeout_ms: 1_000,
    tables: truth.tables
      .filter((table) => table.house === house)
      .map(({ game }) => ({
        game,
        market: "all",
        pause_ms: PAUSE_MS,
        feed: {
          path: `/${house}/${game}/rounds`,
          items: "rounds",
          round_id: "id",
          multiplier: "multiplier",
          history: `/${house}/${game}/rounds?before={id}&limit={limit}`,
        },
        round_ids: "consecutive",
        colors: [{ name: "blue", below: 2 }, { name: "purple", below: 10 }, { name: "pink" }],
        house_edge: 0.01,
      })),
  }));
}
