import { cp, mkdir, mkdtemp, rename, rm, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { environmentOf, openPackages, releaseName } from "../../src/embedded/debian-packages.ts";
import { findPrograms, run } from "../../src/embedded/process.ts";

/** A program, and the environment that it needs. */
export interface Found {
  command: string;
  env: Record<string, string>;
}

/**
 * A program of the distribution: the one that is installed, else its package, fetched once into the folder where a fetched
 * Redis is kept too. `place` is a folder that it is copied to, for a user who cannot reach ours.
 * @throws Error where it is not installed and cannot be fetched.
 */
export async function findProgram(name: string, place: string): Promise<Found> {
  const installed = (await findPrograms([name])).get(name);
  if (installed !== undefined) return { command: installed, env: {} };
  const kept = join(homedir(), ".cache", "roundhouse", `${name}-${await releaseName()}-${process.arch}`);
  if ((await stat(kept).catch(() => null)) === null) await fetchInto(kept, name);
  const folder = join(place, name);
  await cp(kept, folder, { recursive: true, verbatimSymlinks: true });
  return { command: join(folder, "usr", "sbin", name), env: await environmentOf(folder) };
}

async function fetchInto(kept: string, name: string): Promise<void> {
  await mkdir(join(kept, ".."), { recursive: true });
  const draft = await mkdtemp(`${kept}.`);
  try {
    const packages = await openPackages(draft);
    if (packages === null) throw new Error(`${name} is not installed, and there is no apt to fetch it with`);
    let libraries = await packages.librariesOf(name);
    await packages.unpack([name, ...libraries]);
    let problem = await problemOf(draft, name);
    if (problem !== null) {
      // what its libraries need in their turn
      libraries = (await Promise.all(libraries.map((one) => packages.librariesOf(one)))).flat();
      await packages.unpack([...new Set(libraries)]);
      problem = await problemOf(draft, name);
    }
    if (problem !== null) throw new Error(`the fetched ${name} does not run: ${problem}`);
    await packages.close();
    await rename(draft, kept);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

async function problemOf(folder: string, name: string): Promise<string | null> {
  const command = join(folder, "usr", "sbin", name);
  const { code, stderr } = await run({ command, args: ["-V"], env: await environmentOf(folder) });
  return code === null || code > 2 ? stderr : null;
}
