import { max, median } from "simple-statistics";
import { print, printTable } from "../../src/cli/output.ts";
import type { Day } from "./day.ts";
import type { PlantedResult } from "./run-planted.ts";

/** How much of what happened is shown where something is broken; the whole is in the folder. */
const LAST_LINES = 40;

/** Tells people what a day came to. */
export async function printDay(seed: number, day: Day): Promise<void> {
  const { recoveries, memory, broken, history, folder } = day;
  await printTable(
    ["what", "times", "median s", "worst s"],
    [...Map.groupBy(recoveries, ({ kind }) => kind)].map(([kind, ones]) => {
      const seconds = ones.map((one) => one.seconds);
      return [kind, ones.length, fixed(median(seconds)), fixed(max(seconds))];
    }),
  );
  if (memory.length > 0) {
    await printTable(
      ["process", "MB at first", "MB at last"],
      memory.map(({ name, beforeMb, afterMb }) => [name, beforeMb, afterMb]),
    );
  }
  const refused = Object.entries(day.refused).map(([code, n]) => `${n} ${code}`);
  await print(
    `\n${day.rounds} rounds, ${day.sets} forecast sets, ${day.scores} scores; ${day.calls} calls served, ${day.unchanged} unchanged, refused: ${refused.join(", ") || "none"}`,
  );
  if (broken === null) return print(`seed ${seed}: every invariant held`);
  await print(`\nwhat happened, at last:\n${history.slice(-LAST_LINES).join("\n")}\n`);
  await print(`seed ${seed}: ${broken}`);
  // none where only its memory grew: the day itself was well
  if (folder !== null) await print(`all that happened is in ${folder}/history.txt, beside the logs of every process`);
  await print(`again: npm run simulate -- ${seed}`);
}

/** Tells people what several days came to. */
export async function printDays(days: readonly { seed: number; day: Day }[]): Promise<void> {
  await printTable(
    ["seed", "rounds", "sets", "scores", "calls", "faults", "worst s", "result"],
    days.map(({ seed, day: { rounds, sets, scores, calls, recoveries, broken } }) => {
      const worst = Math.max(0, ...recoveries.map(({ seconds }) => seconds));
      return [seed, rounds, sets, scores, calls, recoveries.length, fixed(worst), broken ?? "held"];
    }),
  );
}

/** Tells people which broken builds were caught, and by what. */
export async function printPlanted(caught: readonly PlantedResult[]): Promise<void> {
  await printTable(
    ["planted", "caught", "s", "found"],
    caught.map(({ name, isDetected, seconds, found }) => [name, isDetected ? "yes" : "NO", fixed(seconds), found]),
  );
}

function fixed(seconds: number | undefined): string {
  return seconds === undefined ? "-" : seconds.toFixed(1);
}
