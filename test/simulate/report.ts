import { max, median } from "simple-statistics";
import { print, printTable } from "../../src/cli/output.ts";
import type { Day } from "./day.ts";
import type { PlantedResult } from "./run-planted.ts";

/** How many lines of the history are printed after a failure; the folder has all of them. */
const LAST_LINES = 40;

/** Prints the result of a day. */
export async function printDay(seed: number, day: Day): Promise<void> {
  const { recoveries, memory, failure, history, folder } = day;
  await printTable(
    ["fault", "count", "median recovery s", "longest recovery s"],
    [...Map.groupBy(recoveries, ({ kind }) => kind)].map(([kind, ones]) => {
      const seconds = ones.map((one) => one.seconds);
      return [kind, ones.length, fixed(median(seconds)), fixed(max(seconds))];
    }),
  );
  if (memory.length > 0) {
    await printTable(
      ["process", "MB after warm-up", "MB at the end"],
      memory.map(({ name, beforeMb, afterMb }) => [name, beforeMb, afterMb]),
    );
  }
  const refused = Object.entries(day.refused).map(([code, n]) => `${n} ${code}`);
  await print(
    `\n${day.rounds} rounds, ${day.sets} forecast sets, ${day.scores} scores; ${day.calls} calls served, ${day.unchanged} unchanged, refused: ${refused.join(", ") || "none"}`,
  );
  if (day.repeatedAfter !== null) {
    const { failure: first, folder: kept } = day.repeatedAfter;
    await print(`repeated once after this failure: ${first}; its history and logs are in ${kept}`);
  }
  if (failure === null) return print(`seed ${seed}: every invariant held`);
  await print(`\nlast events:\n${history.slice(-LAST_LINES).join("\n")}\n`);
  await print(`seed ${seed}: ${failure}`);
  // no folder if only the memory grew
  if (folder !== null) await print(`the full history is in ${folder}/history.txt, next to the logs of every process`);
  await print(`to repeat: npm run simulate -- ${seed}`);
}

/** Prints the results of several days. */
export async function printDays(days: readonly { seed: number; day: Day }[]): Promise<void> {
  await printTable(
    ["seed", "rounds", "sets", "scores", "calls", "faults", "longest recovery s", "result"],
    days.map(({ seed, day: { rounds, sets, scores, calls, recoveries, failure, repeatedAfter } }) => {
      const worst = Math.max(0, ...recoveries.map(({ seconds }) => seconds));
      const result = `${failure ?? "held"}${repeatedAfter === null ? "" : ` (repeated after: ${repeatedAfter.failure})`}`;
      return [seed, rounds, sets, scores, calls, recoveries.length, fixed(worst), result];
    }),
  );
}

/** Prints which planted faults were detected, and by which failure. */
export async function printPlanted(results: readonly PlantedResult[]): Promise<void> {
  await printTable(
    ["planted fault", "detected", "s", "failure"],
    results.map(({ name, isDetected, seconds, found }) => [name, isDetected ? "yes" : "NO", fixed(seconds), found]),
  );
}

function fixed(seconds: number | undefined): string {
  return seconds === undefined ? "-" : seconds.toFixed(1);
}
