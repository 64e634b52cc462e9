/**
 * The idioms that this project does not use, and how many are left: `node test/prose/idioms.ts` fails if a folder has more
 * of them than allowance.json grants, `--list [FOLDER]` shows each with its line, `--update` lowers the allowance to what
 * is there now (a moved file takes its count along; no total below src, jobs, sql or docs may rise).
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const ROOT = path.join(import.meta.dirname, "../..");
const ALLOWANCE_FILE = path.join(import.meta.dirname, "allowance.json");
const FILES = [
  "*.md",
  ".github/**/*.md",
  "docs/*.md",
  "clients/*/*.{md,ts,py}",
  "clients/*/src/*.ts",
  "src/**/*.{ts,js,eta,css}",
  "jobs/*.ts",
  "sql/*.sql",
];
/** Made of code whose text is counted where it is written. */
const isGenerated = (file: string) => file.endsWith("types.ts") || file === "docs/cli.md";

/** Each idiom with what to write instead. */
export const IDIOMS: readonly { idiom: RegExp; instead: string }[] = [
  { idiom: /\b(?:told|tells?)\b/i, instead: "reported, notified, returns, shows" },
  { idiom: /\b(?:said|says)\b/i, instead: "stated, reports, is set to" },
  { idiom: /\b(?:whoever|somebody|(?<!`)nobody)\b/i, instead: 'the caller, the operator, a process; "unknown"' },
  { idiom: /(?<=^|[.:;*] +)Where (?!to\b|is\b|are\b)/m, instead: "if, when" },
  { idiom: /\banew\b/i, instead: "again; recomputed, rebuilt" },
  { idiom: /\b(?:goes|go|went|gone) on\b/i, instead: "continues, resumes from" },
  { idiom: /\bat once\b/i, instead: "immediately; together" },
  { idiom: /\bfor (?:good|ever)\b/i, instead: "permanently" },
  { idiom: /\b(?:kept apart|could not be believed)\b/i, instead: "quarantined, failed validation" },
  { idiom: /\b(?:comes?|came) to\b/i, instead: "the result; the total" },
  { idiom: /\bby (?:hand|persons)\b/i, instead: "manually" },
  { idiom: /\b(?:is|are|be|lets?) let go\b|\blets go\b/i, instead: "is released, is closed" },
  {
    idiom: /\b(?:desk|doorkeepers?|askers?|doers?|oneself)\b/i,
    instead: "queries; guard; requester; actor; current account",
  },
  { idiom: /\b(?:hangs|stands) on\b/i, instead: "depends on, is based on" },
  { idiom: /\bbeside\b/i, instead: "next to, with, along with" },
  { idiom: /\bwants an?\b/i, instead: "requires" },
  { idiom: /\btroubles?\b/i, instead: "error, failure" },
  { idiom: /\bjudged?\b/i, instead: "scored, checked" },
];

interface Finding {
  file: string;
  line: number;
  found: string;
  instead: string;
}

/** The idioms in a text, each with its line, in the order of {@link IDIOMS}. */
export function findIdioms(text: string): Omit<Finding, "file">[] {
  return IDIOMS.flatMap(({ idiom, instead }) =>
    [...text.matchAll(new RegExp(idiom, `g${idiom.flags}`))].map((match) => ({
      line: text.slice(0, match.index).split("\n").length,
      found: match[0],
      instead,
    })),
  );
}

/** Every idiom in the files that are checked. */
export function allFindings(): Finding[] {
  return globSync(FILES, { cwd: ROOT })
    .filter((file) => !isGenerated(file) && !file.includes("node_modules"))
    .toSorted()
    .flatMap((file) => findIdioms(readFileSync(path.join(ROOT, file), "utf8")).map((found) => ({ file, ...found })));
}

/** `README.md`, `docs`, `src/houses`: files at the top by their names, the rest by up to two folders. */
export function folderOf(file: string): string {
  const folders = file.split("/").slice(0, -1);
  return folders.length === 0 ? file : folders.slice(0, 2).join("/");
}

type Counts = Record<string, number>;

function countBy(findings: readonly Finding[], name: (file: string) => string): Counts {
  const groups = Object.entries(Object.groupBy(findings, ({ file }) => name(file)));
  return Object.fromEntries(groups.map(([key, found]) => [key, found?.length ?? 0]));
}

const totals = (counts: Counts): Counts =>
  Object.entries(counts).reduce<Counts>((sums, [folder, count]) => {
    const top = folder.split("/")[0] ?? folder;
    return { ...sums, [top]: (sums[top] ?? 0) + count };
  }, {});

/** The names whose count is above what is allowed; a name that is not in the allowance has none. */
export function risen(counts: Counts, allowed: Counts): string[] {
  return Object.entries(counts)
    .filter(([name, count]) => count > (allowed[name] ?? 0))
    .map(([name, count]) => `${name}: ${count}, allowed ${allowed[name] ?? 0}`);
}

function main(options: readonly string[]): void {
  const findings = allFindings();
  const counts = countBy(findings, folderOf);
  const allowed = JSON.parse(readFileSync(ALLOWANCE_FILE, "utf8")) as Counts;
  if (options[0] === "--list") {
    for (const { file, line, found, instead } of findings.filter((one) => one.file.startsWith(options[1] ?? "")))
      console.log(`${file}:${line}  ${found}  →  ${instead}`);
    return;
  }
  const isUpdate = options[0] === "--update";
  const failures = isUpdate ? risen(totals(counts), totals(allowed)) : risen(counts, allowed);
  if (failures.length > 0) {
    console.error(`More forbidden idioms than allowed in\n  ${failures.join("\n  ")}`);
    console.error("See them with `node test/prose/idioms.ts --list FOLDER`; write what stands behind the arrow.");
    process.exitCode = 1;
  } else if (isUpdate) {
    writeFileSync(ALLOWANCE_FILE, `${JSON.stringify(counts, null, 2)}\n`);
  }
  console.log(`${findings.length} forbidden idioms are left.`);
}

if (import.meta.main) main(process.argv.slice(2));
