import { simulateDay } from "./day.ts";
import { PLANTED, plant, type Planted } from "./planted.ts";

/** What became of a build with a fault in it. */
export interface PlantedResult {
  name: string;
  about: string;
  isDetected: boolean;
  seconds: number;
  /** What the simulation said of it. */
  found: string | null;
}

const SEED = 1;
/** Until it is caught; one that shows at the end need not wait long for that. */
const LASTS_MS = 45_000;
const SHOWS_AT_END_MS = 20_000;
/** The one fault of such a day comes early. */
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
/** Two cores are what this is measured on; a day mostly waits. */
const AT_ONCE = 3;

/**
 * Plays a short day with each of these builds, in which what brings its fault out happens, until it is caught.
 * @throws Error for a name that is not planted
 */
export async function runPlanted(
  root: string,
  names: readonly string[],
  say: (line: string) => void,
): Promise<PlantedResult[]> {
  const left = names.map((name) => {
    const planted = PLANTED[name];
    if (planted !== undefined) return { name, planted };
    throw new Error(`there is no planted fault ${JSON.stringify(name)}; there are ${Object.keys(PLANTED).join(", ")}`);
  });
  const caught: PlantedResult[] = [];
  async function runNext(): Promise<void> {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const { name } = next;
      caught.push(await runOne(root, next, (line) => say(`${name.padEnd(20)} ${line}`)));
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, runNext));
  return caught.toSorted((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
}

async function runOne(
  root: string,
  { name, planted }: { name: string; planted: Planted },
  say: (line: string) => void,
): Promise<PlantedResult> {
  const beganMs = performance.now();
  const { edits, control, detectedBy, about } = planted;
  const found = await runBuild(root, [...(control ?? []), ...edits], planted, say);
  const foundInControl = control === undefined ? null : await runBuild(root, control, planted, say);
  const isDetected = found !== null && detectedBy.test(found) && foundInControl === null;
  say(isDetected ? "was caught" : "was not caught");
  const seconds = (performance.now() - beganMs) / 1_000;
  return {
    name,
    about,
    isDetected,
    seconds,
    found: foundInControl === null ? found : `control run: ${foundInControl}`,
  };
}

/** What a day with such a build finds; null when nothing is wrong. */
async function runBuild(
  root: string,
  edits: Planted["edits"],
  { showsAtEnd, faults, houseFaults }: Planted,
  say: (line: string) => void,
): Promise<string | null> {
  const build = await plant(root, edits);
  try {
    const lastsMs = showsAtEnd ? SHOWS_AT_END_MS : LASTS_MS;
    const day = await simulateDay({ ...SIZES, lastsMs, faults, houseFaults, root: build.root, say });
    return day.broken;
  } finally {
    await build.remove();
  }
}
