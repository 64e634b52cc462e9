import { simulateRepeatably } from "./day.ts";
import { PLANTED, plant, type Planted } from "./planted.ts";

/** The result of a planted fault. */
export interface PlantedResult {
  name: string;
  about: string;
  isDetected: boolean;
  seconds: number;
  /** The failure that the simulation found; null if none. */
  found: string | null;
}

const SEED = 1;
/** How long faults occur; shorter for a planted fault that only the end of a day detects. */
const LASTS_MS = 45_000;
const SHOWS_AT_END_MS = 20_000;
/** The fault of such a day occurs early. */
const FAULT_AFTER_MS = 8_000;
const QUIET_MS = 20_000;
const SIZES = {
  seed: SEED,
  quietMs: QUIET_MS,
  houses: 2,
  tablesPerHouse: 2,
  workers: 1,
  apis: 2,
  faultEveryMs: FAULT_AFTER_MS,
  isSoak: false,
  isKept: false,
};
/** Three days in parallel on two cores, since a day mostly waits. */
const PARALLEL_DAYS = 3;

/**
 * Simulates a short day with each planted fault.
 * @throws Error for an unknown name
 */
export async function runPlanted(
  root: string,
  names: readonly string[],
  say: (line: string) => void,
): Promise<PlantedResult[]> {
  const left = names.map((name) => {
    const planted = PLANTED[name];
    if (planted !== undefined) return { name, planted };
    throw new Error(`expected a planted fault (${Object.keys(PLANTED).join(", ")}), got ${JSON.stringify(name)}`);
  });
  const results: PlantedResult[] = [];
  async function runNext(): Promise<void> {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const { name } = next;
      results.push(await runOne(root, next, (line) => say(`${name.padEnd(20)} ${line}`)));
    }
  }
  await Promise.all(Array.from({ length: PARALLEL_DAYS }, runNext));
  return results.toSorted((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
}

async function runOne(
  root: string,
  { name, planted }: { name: string; planted: Planted },
  say: (line: string) => void,
): Promise<PlantedResult> {
  const beganMs = performance.now();
  const { edits, control, detectedBy, about } = planted;
  const found = await runBuild(root, [...(control ?? []), ...edits], planted, say, detectedBy);
  const foundInControl = control === undefined ? null : await runBuild(root, control, planted, say);
  const isDetected = found !== null && detectedBy.test(found) && foundInControl === null;
  say(isDetected ? "detected" : "not detected");
  const seconds = (performance.now() - beganMs) / 1_000;
  return {
    name,
    about,
    isDetected,
    seconds,
    found: foundInControl === null ? found : `control run: ${foundInControl}`,
  };
}

/** Simulates a day with these edits. Returns the failure, which may be `expected`; null if every invariant held. */
async function runBuild(
  root: string,
  edits: Planted["edits"],
  { showsAtEnd, faults, houseFaults }: Planted,
  say: (line: string) => void,
  expected?: RegExp,
): Promise<string | null> {
  const build = await plant(root, edits);
  try {
    const lastsMs = showsAtEnd ? SHOWS_AT_END_MS : LASTS_MS;
    const options = { ...SIZES, lastsMs, faults, houseFaults, root: build.root, say };
    const day = await simulateRepeatably(options, expected);
    return day.failure;
  } finally {
    await build.remove();
  }
}
