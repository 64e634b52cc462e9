import { join } from "node:path";
import { run } from "../../src/embedded/process.ts";
import { InvariantViolation } from "./invariant-violation.ts";

/** The code, working directory and environment of a command. */
export interface CommandContext {
  /** The checkout whose `src/start.js` is run. */
  root: string;
  /** The working directory. */
  folder: string;
  env: Record<string, string>;
}

const TIMEOUT_MS = 240_000;

/**
 * Runs a `roundhouse` command as an operator does. Returns its standard output.
 * @throws InvariantViolation if it fails
 */
export async function runCommand({ root, folder, env }: CommandContext, args: readonly string[]): Promise<string> {
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
  if (code !== 0)
    throw new InvariantViolation(`roundhouse ${args.join(" ")} exited with code ${code}: ${stderr}${stdout}`);
  return stdout;
}
