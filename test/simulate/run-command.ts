import { join } from "node:path";
import { run } from "../../src/embedded/process.ts";
import { InvariantViolation } from "./invariant-violation.ts";

/** Where commands of Roundhouse are run. */
export interface CommandContext {
  /** The checkout whose `src/start.js` is run. */
  root: string;
  /** The working directory. */
  folder: string;
  env: Record<string, string>;
}

const TIMEOUT_MS = 240_000;

/**
 * Runs a command of Roundhouse as an operator does; returns its standard output.
 * @throws Broken if it fails
 */
export async function command({ root, folder, env }: CommandContext, args: readonly string[]): Promise<string> {
  const { PATH = "", HOME = "" } = process.env;
  const { code, stdout, stderr } = await run(
    {
      command: process.execPath,
      args: [join(root, "src/start.js"), ...args],
      cwd: folder,
      env: { PATH, HOME, ...env, DATA_DIR: join(folder, "cli") },
    },
    { timeoutMs: TIMEOUT_MS },
  );
  if (code !== 0) throw new InvariantViolation(`roundhouse ${args.join(" ")} ended with ${code}: ${stderr}${stdout}`);
  return stdout;
}
