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

/** What other commands need to know about a running instance; null if it has no such part. Contains secrets. */
export type RunFacts = z.infer<typeof runFacts>;

/**
 * Writes DATA_DIR/run.json atomically, readable by this user alone. Replaces an earlier one.
 */
export async function writeRunFile(dataDir: string, facts: RunFacts): Promise<void> {
  const draft = join(dataDir, `run.json.${process.pid}`);
  await rm(draft, { force: true });
  await writeFile(draft, `${JSON.stringify(runFacts.parse(facts), null, 2)}\n`, { mode: 0o600 });
  await rename(draft, runFile(dataDir));
}

/**
 * Reads the facts of the instance that runs on this data folder; `dead` with its pid if it ended without cleaning up, null
 * if none ran.
 * @throws Error if the file cannot be read or parsed.
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

/** Removes DATA_DIR/run.json, if there is one: the last step of a clean stop. */
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
