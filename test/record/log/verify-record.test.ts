import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KEY } from "../../../src/forecasts/accuracy/keys.ts";
import { addSums, decodeSums, encodeSums } from "../../../src/forecasts/accuracy/sum-vector.ts";
import { reviseScores } from "../../../src/pass/stores/revise-scores-store.ts";
import { publishLog } from "../../../src/record/log/publish-log.ts";
import { generatedRounds } from "../../forecasts/streams.ts";
import { applyHouses } from "../../../src/houses-file/apply-store.ts";
import { allowSlowness, play, playLate, score, tableIdOf } from "../../api/play.ts";
import { makeWorld, type World } from "../../api/world.ts";
import { houseEntry, tableEntry } from "../../support/houses.ts";

const SCRIPT = fileURLToPath(new URL("../../../docs/verify_record.py", import.meta.url));
const TABLE = "alpha/crash/global";
const run = promisify(execFile);

let world: World;
let folder: string;

beforeAll(async () => {
  world = await makeWorld();
  folder = await mkdtemp(join(tmpdir(), "log-"));
  await allowSlowness(world);
  const rounds = generatedRounds(70).map(({ hundredths }) => hundredths);
  await playAll(rounds.slice(0, 20));
  await writeFile(join(folder, "kept.txt"), await (await fetch(`${world.api.url}/log/checkpoint`)).text());
  await playAll(rounds.slice(20));
});
afterAll(async () => {
  await world.close();
  await rm(folder, { recursive: true });
});

async function publish(): Promise<void> {
  await publishLog(world.sql, { folder, publicUrl: undefined, witnesses: [] }, new AbortController().signal);
  // accuracy is stated in each hour: the next one may begin during a test
  await world.sql`update logs set accuracy_hour = 'infinity'`;
}

async function playAll(rounds: readonly number[], table = TABLE): Promise<void> {
  await play(world, table, rounds, { atOnce: 1 });
  await score(world, table.split("/")[0] ?? "");
  await publish();
}

/** Plays rounds, states the accuracy once `change` is done, and plays on until the statement is public. */
async function stateAccuracy(table: string, rounds: readonly number[], change = () => Promise.resolve()) {
  await playAll(rounds.slice(0, 20), table);
  await change();
  await world.sql`update logs set accuracy_hour = '-infinity'`;
  await playAll([], table);
  await playAll(rounds.slice(20), table);
}

/** Changes rows past all guards, as the owner of the database can. */
async function tamper(statement: string): Promise<void> {
  await world.sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx.unsafe(statement);
  });
}

/** Runs the verifier; null when there is no Python. */
async function check(...files: string[]): Promise<{ code: number; text: string } | null> {
  try {
    const { stdout } = await run("python3", [SCRIPT, world.api.url, ...files], { cwd: folder, timeout: 30_000 });
    return { code: 0, text: stdout };
  } catch (error) {
    const { code, stderr } = error as { code: number | string | null; stderr: string };
    if (code === null) throw error; // it was ended, since it took too long
    return code === "ENOENT" ? null : { code: Number(code), text: stderr };
  }
}

const CHECKED = ["--kept", "kept.txt", "--table", TABLE];

describe("the independent verifier in Python", () => {
  test("checks log, kept checkpoint, and chains and accuracy rows of a table from public addresses alone", async (context) => {
    const found = await check(...CHECKED);
    if (found === null) return context.skip("python3 is not installed");
    expect(found).toMatchObject({ code: 0 });
    expect(found.text).toMatch(
      / entries lead to the signed root; 1 statements and 10 accuracy rows up to round 20 follow from the exports, compared up to round 20 of 70 that the log states; the first statement covers 20 rounds/m,
    );
  });

  test.each([
    ["a round", "rounds set hundredths = hundredths + 1", "expected hash"],
    ["a probability", "forecast_sets set p_ppm[1] = p_ppm[1] + 1", "expected hash"],
    ["an outcome", "score_sets set outcomes[1] = 1 - outcomes[1]", "expected hash"],
  ])("names %s that was changed", async (_, change, text) => {
    const [table, column] = [change.split(" ")[0] ?? "", change.split(" ")[2]?.split("[")[0] ?? ""];
    const key = { rounds: "seq", forecast_sets: "cutoff_seq", score_sets: "settled_seq" }[table] ?? "";
    const where = `where ${key} = 12 and table_id = ${await tableIdOf(world, TABLE)}`;
    await tamper(`create table kept as select ${column} from ${table} ${where}; update ${change} ${where}`);
    try {
      const found = await check(...CHECKED);
      expect(found ?? { code: 1, text: `WRONG: ${text}` }).toMatchObject({
        code: 1,
        text: expect.stringContaining(text) as string,
      });
    } finally {
      await tamper(`update ${table} set ${column} = (select ${column} from kept) ${where}; drop table kept`);
    }
    expect((await check(...CHECKED))?.code ?? 0).toBe(0);
  });

  test("counts the revisions of scores that a statement counted, and no later one", async (context) => {
    const tableId = await tableIdOf(world, TABLE);
    const contradict = async (seq: number) => {
      await world.sql`
        insert into conflicts (table_id, round_id, kept_hundredths, other_hundredths, other_raw)
        select table_id, round_id, hundredths, hundredths + 1, 'x' from rounds where table_id = ${tableId} and seq = ${seq}`;
      await world.sql.begin((tx) => reviseScores(tx, tableId));
    };
    await contradict(15); // the accuracy was stated after twenty rounds
    await publish();
    const found = await check(...CHECKED);
    if (found === null) return context.skip("python3 is not installed");
    expect(found).toMatchObject({ code: 0 });

    await score(world, "alpha");
    await contradict(16);
    await world.sql`update logs set accuracy_hour = '-infinity'`;
    await publish();
    expect(await check(...CHECKED)).toMatchObject({ code: 0 });
    expect(await world.sql`select from score_revisions where table_id = ${tableId}`).not.toHaveLength(0);
  });

  test("accepts true statements about a table that did not show every color yet", async (context) => {
    const table = "alpha/dice/eu";
    await stateAccuracy(
      table,
      Array.from({ length: 70 }, (_, at) => (at % 3 === 0 ? 300 : 150)),
    );
    const found = await check("--table", table);
    if (found === null) return context.skip("python3 is not installed");
    expect(found).toMatchObject({ code: 0 });
    expect(found.text).toMatch(/ 10 accuracy rows up to round \d+ follow/);
  });

  test.each([
    {
      claim: "hits that were invented",
      table: "beta/crash/eu",
      async change(tableId: number) {
        const rows = await world.sql<{ feature: number; sums: Uint8Array }[]>`
          select feature, sums from accuracy_hours where table_id = ${tableId}`;
        for (const { feature, sums } of rows) {
          const changed = decodeSums(sums);
          addSums(changed, new Map([[KEY.hits, 999n]]));
          await world.sql`
            update accuracy_hours set sums = ${encodeSums(changed)}
            where table_id = ${tableId} and feature = ${feature}`;
        }
      },
      text: /hits/,
    },
    {
      claim: "a row that was omitted",
      table: "gamma/rocket/one",
      async change(tableId: number) {
        await world.sql`delete from accuracy_hours where table_id = ${tableId} and feature = 1`;
      },
      text: /expected an accuracy row of/,
    },
  ])("names $claim", async ({ table, change, text }) => {
    const rounds = generatedRounds(70).map(({ hundredths }) => hundredths);
    const tableId = await tableIdOf(world, table);
    await stateAccuracy(table, rounds, () => change(tableId));
    const found = await check("--table", table);
    expect(found ?? { code: 1 }).toMatchObject({ code: 1 });
    if (found !== null) expect(found.text).toMatch(text);
  });

  test("refuses a checkpoint that the log's key did not sign", async (context) => {
    const other = (await readFile(join(folder, "kept.txt"), "utf8")).replace(/\n\d+\n/, "\n2\n");
    await writeFile(join(folder, "other.txt"), other);
    const found = await check("--kept", "other.txt");
    if (found === null) return context.skip("python3 is not installed");
    expect(found).toEqual({ code: 1, text: "WRONG: expected a checkpoint that the log's key signed\n" });
  });
});

describe("a process that is behind another one", () => {
  /** The script, with its waits printed instead of waited for. */
  const QUICK = `import runpy, sys, time
time.sleep = lambda seconds: print("wait", seconds)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")`;

  const readNewest = async () => (await fetch(`${world.api.url}/log/checkpoint`)).text();

  /** Runs the verifier against an API whose checkpoint is the early one for the first `stale` reads. */
  async function checkStale({
    stale,
    keptHoursAgo = 0,
    kept,
    missing,
    options = [],
  }: {
    stale: number;
    keptHoursAgo?: number;
    /** The newest checkpoint by default. */
    kept?: string;
    missing?: string;
    options?: string[];
  }) {
    const early = await readFile(join(folder, "kept.txt"), "utf8");
    const file = join(folder, "stale.txt");
    await writeFile(file, kept ?? (await readNewest()));
    const keptAt = Date.now() / 1_000 - keptHoursAgo * 3_600;
    await utimes(file, keptAt, keptAt);
    let reads = 0;
    const api = createServer((request, response) => {
      void (async () => {
        if (request.url === "/log/checkpoint" && reads++ < stale) return response.end(early);
        if (missing !== undefined && request.url?.includes(missing)) return response.writeHead(404).end();
        const page = await fetch(`${world.api.url}${request.url}`);
        return response.writeHead(page.status).end(Buffer.from(await page.arrayBuffer()));
      })();
    }).listen(0, "127.0.0.1");
    await once(api, "listening");
    const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
    try {
      const script = ["-c", QUICK, SCRIPT, url, "--kept", file, ...options];
      const { stdout } = await run("python3", script, { timeout: 30_000 });
      return { code: 0, stdout, stderr: "" };
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number | string; stdout: string; stderr: string };
      return { code, stdout, stderr };
    } finally {
      api.close();
    }
  }

  test("is asked again until its log is as new as the kept checkpoint", async (context) => {
    const found = await checkStale({ stale: 2 });
    if (found.code === "ENOENT") return context.skip("python3 is not installed");
    expect(found).toMatchObject({ code: 0, stdout: expect.stringMatching(/^wait 1\nwait 2\nok: /) as string });
  });

  test("is reported as behind, and not as wrong, if it stays so", async (context) => {
    const found = await checkStale({ stale: 9 });
    if (found.code === "ENOENT") return context.skip("python3 is not installed");
    expect(found).toMatchObject({ code: 3, stdout: "wait 1\nwait 2\nwait 4\n" });
    expect(found.stderr).toMatch(/^BEHIND: expected a log of at least \d+ entries, found \d+: .*; try again\n$/);
  });

  test("is reported as behind if it has no tile of the log yet", async (context) => {
    const found = await checkStale({ stale: 0, missing: "/log/tile/entries/" });
    if (found.code === "ENOENT") return context.skip("python3 is not installed");
    expect(found).toMatchObject({ code: 3 });
    expect(found.stderr).toMatch(/^BEHIND: expected tile\/entries\/.* or its entries are withheld; try again\n$/);
  });

  test("is reported as wrong if it lacks a tile of a checkpoint that was kept for more than an hour", async (context) => {
    for (const missing of ["/log/tile/entries/", "/log/tile/0/"]) {
      const found = await checkStale({ stale: 0, keptHoursAgo: 2, missing });
      if (found.code === "ENOENT") return context.skip("python3 is not installed");
      expect(found).toMatchObject({ code: 1 });
      expect(found.stderr).toMatch(/^WRONG: expected tile\/.*, kept 120 minutes ago, found nothing: .* withheld\n$/);
    }
  });

  test("is reported as behind if it lacks only entries after such a checkpoint", async (context) => {
    const kept = await readFile(join(folder, "kept.txt"), "utf8");
    const [, size] = (await readNewest()).split("\n");
    const found = await checkStale({ stale: 0, keptHoursAgo: 2, kept, missing: `.p/${size}` });
    if (found.code === "ENOENT") return context.skip("python3 is not installed");
    expect(found).toMatchObject({ code: 3 });
  });

  test("is reported as wrong if the checkpoint was kept for more than an hour", async (context) => {
    const found = await checkStale({ stale: 9, keptHoursAgo: 2 });
    if (found.code === "ENOENT") return context.skip("python3 is not installed");
    expect(found).toMatchObject({ code: 1 });
    expect(found.stderr).toMatch(/^WRONG: expected a log of at least \d+ entries, .* found \d+: it was shortened/);
  });

  const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);
  /** The newest checkpoint with a line as a witness signs it that cosigns at this time. */
  const cosigned = async (at: Date) => {
    const signature = Buffer.alloc(4 + 8 + 64);
    signature.writeBigUInt64BE(BigInt(Math.floor(at.getTime() / 1_000)), 4);
    return `${await readNewest()}— witness.example ${signature.toString("base64")}\n`;
  };

  test.each([
    { claim: "at which a witness cosigned it", cosignedHoursAgo: 2, options: [], code: 1 },
    { claim: "at which a witness cosigned it within the hour", cosignedHoursAgo: 0.5, options: [], code: 3 },
    { claim: "at which its file was written, if that is earlier", cosignedHoursAgo: -9, keptHoursAgo: 2, code: 1 },
    { claim: "that is given", options: ["--kept-at", hoursAgo(2).toISOString()], code: 1 },
    {
      claim: "that is given, instead of earlier ones",
      cosignedHoursAgo: 2,
      keptHoursAgo: 2,
      options: ["--kept-at", hoursAgo(0.5).toISOString()],
      code: 3,
    },
  ])("is wrong or behind by the time $claim", async ({ cosignedHoursAgo, keptHoursAgo = 0, options = [], code }) => {
    const kept = cosignedHoursAgo === undefined ? await readNewest() : await cosigned(hoursAgo(cosignedHoursAgo));
    const found = await checkStale({ stale: 9, kept, keptHoursAgo, options });
    expect(found.code === "ENOENT" ? { code } : found).toMatchObject({ code });
  });

  test("is not checked with a time in another form", async (context) => {
    const found = await checkStale({ stale: 0, options: ["--kept-at", "yesterday"] });
    if (found.code === "ENOENT") return context.skip("python3 is not installed");
    expect(found).toMatchObject({ code: 2 });
    expect(found.stderr).toContain("expected a time such as 2026-11-28T14:00:00Z, found yesterday");
  });
});

describe("exports that end before what the log states", () => {
  const MARKETS = ["cut", "empty", "thinned", "paused", "late", "young", "unstated", "rare"];
  /** With an edge of 1 % the chance of a round from 162.30 is 90 % in 400 rounds. */
  const RARE = { house_edge: 0.01, colors: [{ name: "low", below: 162.3 }, { name: "top" }] };

  beforeAll(async () => {
    const tables = MARKETS.map((market) => tableEntry({ market, ...(market === "rare" ? RARE : {}) }));
    await applyHouses(world.sql, [houseEntry({ id: "delta", name: "Delta", tables })]);
    await allowSlowness(world);
  });

  /** Rounds of the lowest color; a feed that repeats one result is quarantined. */
  const many = (count: number) => Array.from({ length: count }, (_, at) => 150 + (at % 2));
  /** Plays rounds in one response: the first one of a table has no forecasts after it. */
  const playTogether = async (market: string, count: number, options = {}) => {
    await play(world, `delta/crash/${market}`, many(count), options);
    await publish();
  };

  const addLate = async (market: string, count: number) => {
    const roundIds = Array.from({ length: count }, (_, at) => String(at + 1));
    await playLate(world, `delta/crash/${market}`, roundIds);
    await publish();
  };

  test.each([
    { market: "cut", kept: 40, found: "found 40 up to round 40" },
    { market: "empty", kept: 0, found: "found 0 up to round 0" },
  ])("are refused if the newest rounds were removed after $kept", async ({ market, kept, found: text }) => {
    await playTogether(market, 450);
    await playTogether(market, 1);
    await tamper(`
      delete from rounds where seq > ${kept} and table_id = ${await tableIdOf(world, `delta/crash/${market}`)}`);
    const found = await check("--table", `delta/crash/${market}`);
    expect(found ?? { code: 1 }).toMatchObject({ code: 1 });
    if (found === null) return;
    expect(found.text).toContain("and 51 on-time rounds, since the log states 451 up to round 451");
    expect(found.text).toContain(text);
  });

  test("are refused if late rounds were removed that the longest window cannot follow any more", async () => {
    await playTogether("thinned", 20);
    await addLate("thinned", 600);
    await playTogether("thinned", 400);
    await tamper(`
      delete from rounds where seq > 300 and table_id = ${await tableIdOf(world, "delta/crash/thinned")}`);
    const found = await check("--table", "delta/crash/thinned");
    expect(found ?? { code: 1 }).toMatchObject({ code: 1 });
    if (found !== null)
      expect(found.text).toContain(
        "to reach round 620 and 20 on-time rounds, since the log states 420 up to round 1020, found 20 up to round 300",
      );
  });

  test("are refused if the newest forecasts were removed", async () => {
    const where = `where cutoff_seq > 5 and table_id = ${await tableIdOf(world, TABLE)}`;
    await tamper(`create table kept as select * from forecast_sets ${where}; delete from forecast_sets ${where}`);
    try {
      const found = await check(...CHECKED);
      expect(found ?? { code: 1 }).toMatchObject({ code: 1 });
      if (found !== null)
        expect(found.text).toMatch(
          /expected forecasts \d+ of .* as the log states, found \d+: rows were removed, or one process/,
        );
    } finally {
      await tamper("insert into forecast_sets select * from kept; drop table kept");
    }
    expect((await check(...CHECKED))?.code ?? 0).toBe(0);
  });

  test("are refused while scoring is paused for more rounds than the longest window has", async () => {
    await playTogether("paused", 20);
    await playTogether("paused", 1);
    await playTogether("paused", 399, { at: { maySettle: false } });
    expect((await check("--table", "delta/crash/paused"))?.code ?? 0).toBe(0);
    await playTogether("paused", 1, { at: { maySettle: false } });
    const found = await check("--table", "delta/crash/paused");
    expect(found ?? { code: 1 }).toMatchObject({ code: 1 });
    if (found !== null) expect(found.text).toContain("scoring is paused");
  });

  test.each([
    {
      claim: "late rounds follow an open forecast",
      market: "late",
      async change() {
        await playTogether("late", 20);
        await playTogether("late", 1);
        await addLate("late", 600);
      },
      reach: "round 20 of 621",
    },
    {
      claim: "the table is young",
      market: "young",
      async change() {
        await play(world, "delta/crash/young", [150]);
        await playTogether("young", 1);
      },
      reach: "round 0 of 2",
    },
    {
      claim: "the log states nothing about the table yet",
      market: "unstated",
      change: () => play(world, "delta/crash/unstated", many(5)),
      reach: "round 0 of 0",
    },
    {
      claim: "the longest window is open for as long as it can be",
      market: "rare",
      async change() {
        await playTogether("rare", 1);
        await playTogether("rare", 1);
        await playTogether("rare", 399);
        const tableId = await tableIdOf(world, "delta/crash/rare");
        expect(
          await world.sql`
          select max(horizon) as longest from forecasts where table_id = ${tableId} and cutoff_seq = 2`,
        ).toEqual([{ longest: 400 }]);
      },
      reach: "round 1 of 401",
    },
  ])("are accepted if $claim", async ({ market, change, reach }) => {
    await change();
    const found = await check("--table", `delta/crash/${market}`);
    expect(found ?? { code: 0 }).toMatchObject({ code: 0 });
    if (found !== null) expect(found.text).toContain(`compared up to ${reach} that the log states`);
  });
});

describe("a public export", () => {
  const pages = async (kind: string, table = TABLE) => {
    const rows: string[] = [];
    let path: string | undefined = `/log/export/${kind}/${table}`;
    for (let page = 0; path !== undefined; page++) {
      expect(page).toBeLessThan(10);
      const response: Response = await fetch(world.api.url + path);
      expect(response.status).toBe(200);
      rows.push(...(await response.text()).trimEnd().split("\n").slice(1));
      path = /<(.*)>; rel="next"/.exec(response.headers.get("Link") ?? "")?.[1];
    }
    return rows;
  };

  test("ends before the oldest cutoff with an open forecast, and shows no open one", async () => {
    const [head] = await world.sql<{ end: number }[]>`
      select open_sets[1]::integer - 1 as end from table_heads where table_id = ${await tableIdOf(world, TABLE)}`;
    expect(await pages("rounds")).toHaveLength(head?.end ?? 0);
    const forecasts = await pages("forecasts");
    expect(forecasts.length).toBeGreaterThan(100);
    expect(forecasts.filter((row) => row.includes(",open,"))).toEqual([]);
    const scores = await pages("scores");
    expect(scores.length).toBeGreaterThan(100);
    const settled = scores.map((row) => Number(row.split(",")[5]));
    expect(Math.max(...settled)).toBeLessThanOrEqual(head?.end ?? 0);
  });

  test("has no revision that follows a score which is not public yet, and has both later", async () => {
    const table = "epsilon/crash/eu";
    await applyHouses(world.sql, [houseEntry({ id: "epsilon", tables: [tableEntry({ market: "eu" })] })]);
    await allowSlowness(world);
    const tableId = await tableIdOf(world, table);
    const read = async () => (await pages("scores", table)).map((row) => row.split(",").slice(-2));
    await play(
      world,
      table,
      Array.from({ length: 30 }, (_, at) => (at % 3 === 0 ? 300 : 150)),
      { atOnce: 1 },
    );
    const before = await read();
    await world.sql`
      insert into conflicts (table_id, round_id, kept_hundredths, other_hundredths, other_raw)
      select table_id, round_id, hundredths, hundredths + 1, 'x' from rounds where table_id = ${tableId} and seq = 5`;
    await world.sql.begin((tx) => reviseScores(tx, tableId));
    const [revision] = await world.sql<{ hash: string }[]>`
      select encode(hash, 'hex') as hash from score_revisions where table_id = ${tableId} order by revision`;
    expect(before.length).toBeGreaterThan(1);
    expect(await read()).toEqual(before);
    await play(
      world,
      table,
      Array.from({ length: 80 }, (_, at) => (at % 3 === 0 ? 300 : 150)),
      { atOnce: 1 },
    );
    const after = await read();
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.map(([, hash]) => hash)).toContain(revision?.hash);
    expect(after.map(([previous]) => previous)).toEqual([
      "0".repeat(64),
      ...after.map(([, hash]) => hash).slice(0, -1),
    ]);
  });

  test.each([
    "rounds/nowhere/crash/global",
    "people/alpha/crash/global",
    "rounds/alpha/crash/global?after=x",
    "scores/alpha/crash/global?after=1-2",
  ])("of %s is not found", async (path) => {
    expect((await fetch(`${world.api.url}/log/export/${path}`)).status).toBe(404);
  });
});
