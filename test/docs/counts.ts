/**
 * Counts of the source, for docs/contributing.md: `npm run counts` prints files, lines and median, the number of files of
 * the largest folders, functions longer than 60 lines, cycles between the folders of src, and the lines of each feature.
 */
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { median } from "simple-statistics";

const ROOT = path.join(import.meta.dirname, "../..");
const FOLDERS_SHOWN = 8;

/** Which folders implement which feature; a folder that is not listed is a feature of its own. */
const FEATURES: Readonly<Record<string, readonly string[]>> = {
  "houses: adapters, polling, proofs, houses file": ["src/houses", "src/houses-file"],
  "rounds: intake, gaps, notices, import, re-read, corrections": [
    "src/rounds",
    "src/backfill",
    "src/import",
    "src/reread",
    "src/corrections",
  ],
  "forecasts: model, scores, accuracy, readings": ["src/forecasts"],
  "passes and jobs": ["src/pass", "src/tables", "jobs"],
  "public record and verify": ["src/record", "src/verify", "src/audit"],
  calibrations: ["src/calibration"],
  "API: HTTP, JSON API, snapshot in memory, limits": ["src/http", "src/api", "src/published", "src/limits"],
  "callers and usage": ["src/callers", "src/usage"],
  "accounts, mail and console": ["src/accounts", "src/mail", "src/console"],
  "payments: ledger, purchases, top-ups": ["src/ledger", "src/purchases", "src/topups"],
  "operators' pages": ["src/ops"],
  "public site, charts, page frame": ["src/site", "src/charts", "src/frame"],
  "commands and settings": ["src/cli", "src/config"],
  "queue, database, processes": ["src/queue", "src/db", "src/serve"],
  "private servers and demo": ["src/embedded", "src/demo"],
  "operation: alerts, metrics, housekeeping, backup": ["src/alerts", "src/metrics", "src/housekeeping", "src/backup"],
  schema: ["sql"],
};

interface Source {
  file: string;
  text: string;
  lines: number;
}

const sources: Source[] = globSync(["src/**/*.{ts,js}", "jobs/*.ts", "sql/*.sql"], { cwd: ROOT })
  .toSorted()
  .map((file) => {
    const text = readFileSync(path.join(ROOT, file), "utf8");
    return { file, text, lines: text.split("\n").length - 1 };
  });

const linesOf = (files: readonly Source[]) => files.reduce((sum, { lines }) => sum + lines, 0);
const code = sources.filter(({ file }) => file.endsWith(".ts"));

/** Functions longer than 60 lines, the longest first; a function inside another one counts for both. */
function longFunctions(): string[] {
  const options = ["--config", "test/docs/long-functions.json", "--format", "unix", "src", "jobs"];
  const { stdout } = spawnSync("node_modules/.bin/oxlint", options, { cwd: ROOT, encoding: "utf8" });
  const found = [...stdout.matchAll(/^(\S+?:\d+):\d+: The .*?function (?:`(\w+)` )?has too many lines \((\d+)\)/gm)];
  return found
    .map(([, place = "", name = "without a name", lines = ""]) => ({
      text: `${lines.padStart(4)}  ${name}, ${place}`,
      lines: Number(lines),
    }))
    .toSorted((a, b) => b.lines - a.lines)
    .map(({ text }) => text);
}

/** The folder of a file for cycles: that below src, and a file at the top of src by its own name. */
const unitOf = (file: string) => file.split("/").slice(0, 2).join("/");

/** Groups of folders of src that import each other, types included. */
function cycles(): string[][] {
  const imports = new Map<string, Set<string>>();
  for (const { file, text } of code.filter((one) => one.file.startsWith("src/"))) {
    const targets = imports.get(unitOf(file)) ?? new Set<string>();
    imports.set(unitOf(file), targets);
    for (const [, to = ""] of text.matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)) {
      targets.add(unitOf(path.posix.join(path.posix.dirname(file), to)));
    }
  }
  const reach = (from: string, seen = new Set<string>()): Set<string> => {
    for (const to of imports.get(from) ?? []) {
      if (seen.has(to)) continue;
      seen.add(to);
      reach(to, seen);
    }
    return seen;
  };
  const reached = new Map([...imports.keys()].map((unit) => [unit, reach(unit)]));
  const isMutual = (a: string, b: string) =>
    a !== b && reached.get(a)?.has(b) === true && reached.get(b)?.has(a) === true;
  const groups = [...imports.keys()].map((unit) =>
    [...imports.keys()].filter((other) => other === unit || isMutual(unit, other)),
  );
  return groups.filter((group, i) => group.length > 1 && groups.findIndex((one) => one[0] === group[0]) === i);
}

function main(): void {
  const folders = Object.groupBy(sources, ({ file }) => path.dirname(file));
  const sizes = Object.entries(folders).map(([folder, files = []]) => ({ folder, files: files.length }));
  console.log(
    `files ${sources.length}, lines ${linesOf(sources)}, median ${median(sources.map(({ lines }) => lines))} lines`,
  );
  console.log("\nfolders with the most files");
  for (const { folder, files } of sizes.toSorted((a, b) => b.files - a.files).slice(0, FOLDERS_SHOWN)) {
    console.log(`${String(files).padStart(4)}  ${folder}`);
  }
  const long = longFunctions();
  console.log(`\nfunctions longer than 60 lines: ${long.length}`);
  for (const one of long) console.log(one);
  const found = cycles();
  console.log(`\ncycles between folders of src: ${found.length}`);
  for (const group of found) console.log(`  ${group.join(", ")}`);
  console.log("\nlines by feature");
  const featureOf = ({ file }: Source) => {
    const folder = file.startsWith("src/") ? unitOf(file) : file.split("/")[0]!;
    const [feature] = Object.entries(FEATURES).find(([, parts]) => parts.includes(folder)) ?? [
      "files at the top of src",
    ];
    return feature;
  };
  const features = Object.entries(Object.groupBy(sources, featureOf)).map(([name, files = []]) => ({
    name,
    lines: linesOf(files),
  }));
  for (const { name, lines } of features.toSorted((a, b) => b.lines - a.lines)) {
    console.log(`${String(lines).padStart(6)}  ${name}`);
  }
}

main();
