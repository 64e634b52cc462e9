import { playDay } from "./day.ts";
import { PLANTED, plant, type Planted } from "./planted.ts";

/** What became of a build with a fault in it. */
export interface Caught {
  name: string;
  about: string;
  isCaught: boolean;
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
export async function playPlanted(
  root: string,
  names: readonly string[],
  say: (line: string) => void,
): Promise<Caught[]> {
  const left = names.map((name) => {
    const planted = PLANTED[name];
    if (planted !== undefined) return { name, planted };
    throw new Error(`there is no planted fault ${JSON.stringify(name)}; there are ${Object.keys(PLANTED).join(", ")}`);
  });
  const caught: Caught[] = [];
  async function playNext(): Promise<void> {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const { name } = next;
      caught.push(await playOne(root, next, (line) => say(`${name.padEnd(20)} ${line}`)));
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, playNext));
  return caught.toSorted((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
}

async function playOne(
  root: string,
  { name, planted }: { name: string; planted: Planted },
  say: (line: string) => void,
): Promise<Caught> {
  const beganMs = performance.now();
  const { edits, control, caughtBy, about } = planted;
  const found = await playBuild(root, [...(control ?? []), ...edits], planted, say);
  const foundInControl = control === undefined ? null : await playBuild(root, control, planted, say);
  const isCaught = found !== null && caughtBy.test(found) && foundInControl === null;
  say(isCaught ? "was caught" : "was not caught");
  const seconds = (performance.now() - beganMs) / 1_000;
  return { name, about, isCaught, seconds, found: foundInControl === null ? found : `control run: ${foundInControl}` };
}

/** What a day with such a build finds; null when nothing is wrong. */
async function playBuild(
  root: string,
  edits: Planted["edits"],
  { showsAtEnd, faults, troubles }: Planted,
  say: (line: string) => void,
): Promise<string | null> {
  const build = await plant(root, edits);
  try {
    const lastsMs = showsAtEnd ? SHOWS_AT_END_MS : LASTS_MS;
    const day = await playDay({ ...SIZES, lastsMs, faults, troubles, root: build.root, say });
    return day.broken;
  } finally {
    await build.remove();
  }
}
