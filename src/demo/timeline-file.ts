import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { createFolder } from "../create-folder.ts";
import { reasonOf } from "../errors.ts";
import { beginTimeline, changeSpeed, houseMsAt, speedAt, type Timeline } from "./timeline.ts";

/** Games already played when the demo house starts for the very first time: 200 of them, one a second. */
const PAST_AT_FIRST_START_MS = 200_000;

const stretch = z.strictObject({ t0: z.iso.datetime(), speed: z.number().positive(), since: z.iso.datetime() });
const fileContents = z.strictObject({ ...stretch.shape, earlier: z.array(stretch).max(100) });

/**
 * Opens the timeline in `DATA_DIR/demo-house.json`: creates it or changes it to `speed`, if necessary, and writes it
 * atomically. `t0` is the T0 of "game n ends at T0 + n s", divided by `speed`.
 * @throws Error with the name of the file if it cannot be read, parsed or written; an unreadable file is never replaced,
 * since a new T0 would change the times of published rounds.
 */
export async function openTimeline(
  dataDir: string,
  options: { nowMs: number; speed: number; say: (line: string) => void },
): Promise<Timeline> {
  const { nowMs, speed, say } = options;
  const file = join(dataDir, "demo-house.json");
  const kept = await readTimeline(file);
  if (kept === null) {
    const timeline = beginTimeline(nowMs, speed, PAST_AT_FIRST_START_MS);
    await writeTimeline(dataDir, file, timeline);
    return timeline;
  }
  if (houseMsAt(kept, nowMs) < 0) {
    say(
      `the demo house begins at ${iso(kept[0].t0Ms)}, which this clock has not reached; to begin now, delete ${file}`,
    );
  }
  const before = speedAt(kept, Infinity);
  if (before === speed) return kept;
  const timeline = changeSpeed(kept, nowMs, speed);
  await writeTimeline(dataDir, file, timeline);
  say(`the demo house continues at speed ${speed} instead of ${before}; its games are numbered on`);
  return timeline;
}

async function readTimeline(file: string): Promise<Timeline | null> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw new Error(`${file}, which keeps when the demo house began, cannot be read`, { cause: error });
  }
  try {
    const { earlier, ...current } = fileContents.parse(JSON.parse(text));
    const stretches = [...earlier, current].map(({ t0, speed, since }) => ({
      sinceMs: Date.parse(since),
      t0Ms: Date.parse(t0),
      speed,
    }));
    const [first, ...rest] = stretches;
    if (first === undefined || rest.some(({ sinceMs }, place) => sinceMs <= (stretches[place]?.sinceMs ?? 0))) {
      throw new Error("expected the stretches before the current one oldest first");
    }
    return [first, ...rest];
  } catch (error) {
    const what = error instanceof z.ZodError ? z.prettifyError(error) : reasonOf(error);
    throw new Error(
      `${file} is not what the demo house wrote there (${what}); restore it, or delete it to let the demo house start again`,
      { cause: error },
    );
  }
}

async function writeTimeline(dataDir: string, file: string, timeline: Timeline): Promise<void> {
  const stretches = timeline.map(({ t0Ms, speed, sinceMs }) => ({ t0: iso(t0Ms), speed, since: iso(sinceMs) }));
  const contents = { ...stretches.at(-1), earlier: stretches.slice(0, -1) };
  const draft = `${file}.${process.pid}`;
  try {
    await createFolder(dataDir);
    await writeFile(draft, `${JSON.stringify(contents, null, 2)}\n`);
    await rename(draft, file);
  } catch (error) {
    throw new Error(`${file}, which keeps when the demo house began, cannot be written; make ${dataDir} writable`, {
      cause: error,
    });
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
