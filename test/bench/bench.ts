/**
 * `npm run bench -- NAME`: measures the figures of docs/benchmarks.md and CHANGELOG.
 *
 * Prints a table, or one JSON object with `--json`; the object is also stored in `DATA_DIR/bench`. `--short` is a quick
 * check with less data, whose figures are not representative.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import path from "node:path";
import { Command } from "commander";
import { print, printJson, printTable, say } from "../../src/cli/output.ts";
import type { Bench, BenchResult } from "./bench-result.ts";
import api from "./api.ts";
import calibrate from "./calibrate.ts";
import fairness from "./fairness.ts";
import importBench from "./import.ts";
import ingest from "./ingest.ts";
import honesty from "./honesty.ts";
import meter from "./meter.ts";
import model from "./model.ts";
import pipeline from "./pipeline/pipeline.ts";
import queue from "./queue/queue.ts";
import regret from "./regret.ts";
import scale from "./scale/scale.ts";
import verify from "./verify.ts";
import windows from "./windows.ts";

const BENCHES: readonly Bench[] = [
  api,
  model,
  calibrate,
  honesty,
  regret,
  windows,
  fairness,
  ingest,
  importBench,
  meter,
  pipeline,
  queue,
  scale,
  verify,
];

const program = new Command("npm run bench --")
  .description("measure the documented figures, each against a baseline")
  .usage("NAME");
program.configureOutput({ writeErr: (text) => process.stderr.write(text) }).exitOverride((error) => {
  process.exit(error.exitCode === 0 ? 0 : 2);
});
for (const bench of BENCHES) {
  const command = program
    .command(bench.name)
    .description(bench.about)
    .option("--json", "print one JSON object instead of a table")
    .option("--short", "a quick check with less data; its figures are not representative");
  for (const [flag, what] of Object.entries(bench.flags ?? {})) command.option(flag, what);
  command.action(({ json = false, short = false, ...given }: Given) => measure(bench, json, short, given));
}
await program.parseAsync();

type Given = { json?: boolean; short?: boolean } & Record<string, string>;

async function measure(bench: Bench, asJson: boolean, isShort: boolean, given: Record<string, string>): Promise<void> {
  const directory = path.resolve(process.env["DATA_DIR"] ?? ".roundhouse", "bench");
  mkdirSync(directory, { recursive: true });
  say(
    `${bench.name}: ${bench.about}${isShort ? " (short)" : ""}; ${availableParallelism()} cores, ${cpus()[0]?.model ?? "?"}`,
  );
  const startedAt = performance.now();
  const measured = await bench.run({ isShort, directory, say, given });
  const file = path.join(directory, `${bench.name}.json`);
  writeFileSync(file, `${JSON.stringify({ ...jsonOf(bench, measured), short: isShort }, null, 2)}\n`);
  if (asJson) await printJson(jsonOf(bench, measured));
  else await printResult(measured);
  say(`took ${((performance.now() - startedAt) / 1000).toFixed(0)} s; stored in ${path.relative("", file)}`);
  if (measured.failures.length > 0) {
    for (const failure of measured.failures) say(`target missed: ${failure}`);
    process.exitCode = 1;
  }
}

function jsonOf({ name }: Bench, { baseline, ours, unit, results, failures }: BenchResult) {
  return { name, ratio: ratioOf({ baseline, ours }), baseline, ours, unit, results, failures };
}

function ratioOf({ baseline, ours }: Pick<BenchResult, "baseline" | "ours">): number | null {
  return baseline === null || ours === null ? null : ours / baseline;
}

async function printResult({ baseline, ours, unit, results, notes, ...measured }: BenchResult): Promise<void> {
  const head = [...(measured.shown ?? Object.keys(results[0] ?? {}))];
  await printTable(
    head,
    results.map((row) => head.map((column) => row[column] ?? null)),
  );
  const ratio = ratioOf({ baseline, ours });
  if (ratio !== null)
    await print(`\nratio ${ratio.toFixed(2)}: ours ${shown(ours)}, baseline ${shown(baseline)} ${unit}`);
  for (const note of notes) await print(note);
}

function shown(value: number | null): string {
  return value === null ? "-" : value.toLocaleString("en", { maximumSignificantDigits: value >= 1000 ? 6 : 3 });
}
