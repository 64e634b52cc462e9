import { existsSync, globSync, readFileSync } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { programOf } from "./generated.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const pages = globSync(["*.md", "docs/*.md", "clients/*/README.md"], {
  cwd: ROOT,
})
  .filter((file) => file !== "docs/cli.md")
  .toSorted();
const textOf = (file: string) => readFileSync(path.join(ROOT, file), "utf8");
const program = await programOf();
const scripts = z.object({ scripts: z.record(z.string(), z.string()) });

/** What stands in code, inline or in blocks, a line each. */
function codeOf(text: string): string[] {
  const blocks = [...text.matchAll(/^```[^\n]*\n(.*?)^```/gms)].flatMap(([, block = ""]) => block.split("\n"));
  const rest = text.replaceAll(/^```.*?^```/gms, "");
  return [...blocks, ...[...rest.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code)];
}

/** What is wrong with a command line of ours: a word that is no command, or an option that it does not have. */
function problemOf(line: string): string | null {
  const [, rest = ""] = /(?:^|[\s$"(])roundhouse ((?!complete)[a-z][^#|>]*)/.exec(line) ?? [];
  if (rest === "") return null;
  const words = rest.trim().split(/\s+/);
  let command: Command = program;
  while (words.length > 0) {
    const found = command.commands.find((one) => one.name() === words[0]);
    if (found === undefined) break;
    command = found;
    words.shift();
  }
  if (command === program) return `there is no command ${words[0]}: ${line}`;
  const options = new Set([...command.options.flatMap(({ short, long }) => [short, long]), "--help", "-h"]);
  const unknown = words
    .map((word) => /^\[?(--[a-z-]+)/.exec(word)?.[1])
    .filter((option) => option !== undefined && !options.has(option));
  if (unknown.length > 0) return `${command.name()} has no ${unknown.join(", ")}: ${line}`;
  if (command.commands.length > 0 && command.options.length === 0 && /^[a-z]/.test(words[0] ?? ""))
    return `${command.name()} has no command ${words[0]}: ${line}`;
  return null;
}

describe("documents", () => {
  it.each(pages)("%s names only commands and options that exist", (file) => {
    expect(
      codeOf(textOf(file))
        .map(problemOf)
        .filter((problem) => problem !== null),
    ).toEqual([]);
  });

  it("would notice a command or an option that does not exist", () => {
    expect(problemOf("npx roundhouse house list --json")).toBeNull();
    expect(problemOf("roundhouse hoses list")).toMatch(/^there is no command hoses/);
    expect(problemOf("roundhouse house lst")).toMatch(/^house has no command lst/);
    expect(problemOf("0 3 * * * roundhouse backup --into x")).toMatch(/^backup has no --into/);
  });

  it.each(pages)("%s names only npm scripts that exist", (file) => {
    const manifest = file.startsWith("clients/typescript/") ? "clients/typescript/package.json" : "package.json";
    const known = Object.keys(scripts.parse(JSON.parse(textOf(manifest))).scripts);
    const inClient = Object.keys(scripts.parse(JSON.parse(textOf("clients/typescript/package.json"))).scripts);
    const unknown = codeOf(textOf(file)).flatMap((line) =>
      [...line.matchAll(/\bnpm run (?:-s )?([a-z:-]+)/g)].flatMap(([, name = ""]) =>
        (line.includes("--prefix") ? inClient : known).includes(name) ? [] : [name],
      ),
    );
    expect(unknown).toEqual([]);
  });

  it.each(pages)("%s names only files of the repository that exist", (file) => {
    const folder = path.dirname(path.join(ROOT, file));
    const missing = codeOf(textOf(file)).flatMap((code) =>
      [...code.matchAll(/(?<![\w/.-])(?:src|jobs|sql|test|deploy|docs|clients)\/[\w./-]*\w/g)]
        .map(([name]) => name)
        .filter((name) => !existsSync(path.join(ROOT, name)) && !existsSync(path.join(folder, name))),
    );
    expect(missing).toEqual([]);
  });

  it.each(pages)("%s names only settings that exist", (file) => {
    const known = new Set(settingNames());
    const named = codeOf(textOf(file)).flatMap(
      (code) => /^([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=|$)/.exec(code)?.[1] ?? [],
    );
    expect(named.filter((name) => !known.has(name) && !OTHER_VARIABLES.has(name))).toEqual([]);
  });
});

/** Variables of tests and examples, and a placeholder. */
const OTHER_VARIABLES = new Set([
  "FUZZ_RUNS",
  "FUZZ_SEED",
  "NAME_FILE",
  "RECORDED_ROUNDS",
  "WRITE_DOCS",
  "RECORDED_ROUNDS_ALL",
  "ROUNDHOUSE_KEY",
  "ROUNDHOUSE_URL",
  "TEST_SERVERS",
]);

/** Settings of Roundhouse, and what only docker-compose.yml and its scripts read. */
function settingNames(): string[] {
  const settings = [...textOf("docs/settings.md").matchAll(/^\| `([A-Z_0-9]+)` \|/gm)];
  const compose = globSync(["docker-compose.yml", "Dockerfile", "deploy/*.sh"], { cwd: ROOT }).flatMap((file) => [
    ...textOf(file).matchAll(/(?:\$\{?|^ARG )([A-Z][A-Z0-9_]+)/gm),
  ]);
  return [...settings, ...compose].map(([, name = ""]) => name);
}
