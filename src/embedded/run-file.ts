import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { codeOf } from "../errors.ts";
import { readClaim } from "./lock.ts";
import { isRunning, processMark } from "./pids.ts";

const runFacts = z.object({
  pid: z.number().int().positive(),
  started_at: z.string(),
  version: z.string(),
  url: z.string().nullable(),
  worker_url: z.string().nullable(),
  database_url: z.string(),
  redis_url: z.string(),
  demo_house_url: z.string().nullable(),
  api_key: z.string().nullable(),
});

/** What a running instance tells other commands about itself; null if it has no such thing. Holds secrets. */
export type RunFacts = z.infer<typeof runFacts>;

/**
 * Writes DATA_DIR/run.json, readable by us alone, in one piece: a reader sees all of it or none. Replaces an earlier
 * one.
 */
export async function writeRunFile(dataDir: string, facts: RunFacts): Promise<void> {
  const draft = join(dataDir, `run.json.${process.pid}`);
  await rm(draft, { force: true });
  await writeFile(draft, `${JSON.stringify(runFacts.parse(facts), null, 2)}\n`, { mode: 0o600 });
  await rename(draft, runFile(dataDir));
}

/**
 * The facts of the instance that runs on this data folder; `dead` with its pid where it ended without cleaning up,
 * null if none ran. Throws where the file is a running instance's and cannot be understood.
 */
export async function readRunFile(dataDir: string): Promise<RunFacts | { dead: number } | null> {
  let text: string;
  try {
    text = await readFile(runFile(dataDir), "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) return null;
    throw new Error(`${runFile(dataDir)} cannot be read: run this as the user who started roundhouse`, {
      cause: error,
    });
  }
  try {
    const { pid } = runFacts.pick({ pid: true }).parse(JSON.parse(text));
    return (await isInstance(dataDir, pid)) ? runFacts.parse(JSON.parse(text)) : { dead: pid };
  } catch (error) {
    throw new Error(`${runFile(dataDir)} does not look like ours: stop roundhouse, remove the file, start again`, {
      cause: error,
    });
  }
}

/** Removes DATA_DIR/run.json: the last act of a clean stop. Nothing happens where there is none. */
export async function removeRunFile(dataDir: string): Promise<void> {
  await rm(runFile(dataDir), { force: true });
}

function runFile(dataDir: string): string {
  return join(dataDir, "run.json");
}

/** Whether the pid is still the instance's, and not that of a later process which was given the same number. */
async function isInstance(dataDir: string, pid: number): Promise<boolean> {
  if (!(await isRunning(pid))) return false;
  const claim = await readClaim(dataDir);
  return claim === null || claim.pid !== pid || claim.mark === (await processMark(pid));
}
