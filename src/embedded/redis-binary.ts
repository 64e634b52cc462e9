import { mkdir, mkdtemp, readdir, rename, rm, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { environmentOf, openPackages, releaseName } from "./debian-packages.ts";
import { findPrograms, run } from "./process.ts";

/** A Redis server program that reported its version, and the environment it needs. */
export interface RedisBinary {
  command: string;
  env: Record<string, string>;
}

/**
 * Where to look and where to put things: `cacheDir` serves every data folder of this user. `searchPath` is a PATH;
 * without it, ours.
 */
export interface RedisSearch {
  dataDir: string;
  cacheDir: string;
  say: (line: string) => void;
  searchPath?: string;
}

/** redis-check-rdb is the server under another name; Debian puts it into redis-tools, which installs no service. */
const SERVERS = ["redis-server", "valkey-server", "redis-check-rdb"];
const PACKAGES = ["redis-tools", "liblzf1", "libjemalloc2", "libatomic1"];

/** What a killed fetch left is swept after an hour, when no living one can still be at it. */
const ABANDONED_MS = 3_600_000;

/**
 * A Redis server: one that is installed, else Debian's or Ubuntu's own packages, fetched and unpacked into a folder
 * of ours, which needs no root and installs nothing; apt checks their signatures. Throws, naming what can be done,
 * where neither is possible.
 */
export async function findRedis(search: RedisSearch): Promise<RedisBinary> {
  const installed = await findInstalled(search);
  if (installed !== null) return installed;
  const tools = await findPrograms(["apt-get", "apt-cache", "dpkg-deb"], search.searchPath);
  if (tools.size < 3) throw new Error(`no redis-server on this machine: ${WAYS_OUT}`);
  const name = `redis-${await releaseName()}-${process.arch}`;
  for (const folder of [search.cacheDir, join(search.dataDir, "redis-server")]) {
    const cached = await tryUnpacked(join(folder, name));
    if (cached !== null) return cached;
  }
  const folder = await firstWritable([search.cacheDir, join(search.dataDir, "redis-server")]);
  search.say("no redis-server on this machine: fetching Redis (1.3 MB, once) with apt; nothing is installed");
  const draft = await mkdtemp(join(folder, `${name}.`));
  try {
    await fetchServer(draft, search.searchPath);
    return await keep(draft, join(folder, name));
  } catch (error) {
    throw new Error(`no redis-server on this machine, and none could be fetched; ${WAYS_OUT}`, { cause: error });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

const WAYS_OUT =
  "install it (brew install redis, apt-get install redis-server), use docker compose up, or set REDIS_URL to a server of your own";

async function findInstalled({ dataDir, searchPath }: RedisSearch): Promise<RedisBinary | null> {
  const found = await findPrograms(SERVERS, searchPath);
  for (const name of SERVERS) {
    const path = found.get(name);
    if (path === undefined) continue;
    const command = name === "redis-check-rdb" ? await nameServer(path, join(dataDir, "bin")) : path;
    if ((await problemOf({ command, env: {} })) === null) return { command, env: {} };
  }
  return null;
}

/** The program decides by its name what it is. */
async function nameServer(checkRdb: string, folder: string): Promise<string> {
  const name = join(folder, "redis-server");
  await mkdir(folder, { recursive: true });
  await rm(name, { force: true });
  await symlink(checkRdb, name);
  return name;
}

/** Null if the program is a Redis or Valkey server that can run here, otherwise its output. */
async function problemOf({ command, env }: RedisBinary): Promise<string | null> {
  const { code, stdout, stderr } = await run({ command, args: ["--version"], env });
  return code === 0 && /server v=/.test(stdout) ? null : stderr.trim() || stdout.trim() || `exit code ${code}`;
}

async function unpackedServer(folder: string): Promise<RedisBinary> {
  return { command: join(folder, "usr", "bin", "redis-server"), env: await environmentOf(folder) };
}

async function tryUnpacked(folder: string): Promise<RedisBinary | null> {
  if ((await stat(join(folder, "usr", "lib")).catch(() => null)) === null) return null;
  const server = await unpackedServer(folder);
  return (await problemOf(server)) === null ? server : null;
}

async function firstWritable(folders: string[]): Promise<string> {
  const problems: unknown[] = [];
  for (const folder of folders) {
    try {
      await mkdir(folder, { recursive: true });
      await rm(await mkdtemp(join(folder, "probe.")), { recursive: true });
      await sweep(folder);
      return folder;
    } catch (error) {
      problems.push(error);
    }
  }
  throw new AggregateError(problems, `no folder to keep Redis in: make ${folders.join(" or ")} writable`);
}

async function sweep(folder: string): Promise<void> {
  const drafts = (await readdir(folder)).filter((name) => /^redis-.*\.[A-Za-z0-9]{6}$/.test(name));
  for (const path of drafts.map((name) => join(folder, name))) {
    const found = await stat(path).catch(() => null);
    if (found !== null && Date.now() - found.mtimeMs > ABANDONED_MS) await rm(path, { recursive: true, force: true });
  }
}

/** Fetches and unpacks a server into `draft`. */
async function fetchServer(draft: string, searchPath: string | undefined): Promise<void> {
  const packages = await openPackages(draft, searchPath);
  if (packages === null) throw new Error("apt is gone");
  await packages.unpack(PACKAGES);
  await symlink("redis-check-rdb", join(draft, "usr", "bin", "redis-server"));
  if ((await problemOf(await unpackedServer(draft))) !== null) {
    // A release or a very small system where it needs more than it did where this was tried.
    const libraries = await packages.librariesOf("redis-tools");
    await packages.unpack(libraries.filter((name) => !PACKAGES.includes(name)));
  }
  await packages.close();
}

/** Puts a complete copy in its place. Another process may have done so meanwhile: then its copy is used. */
async function keep(draft: string, place: string): Promise<RedisBinary> {
  const problem = await problemOf(await unpackedServer(draft));
  if (problem !== null) throw new Error(`the fetched server does not run: ${problem}`);
  try {
    await rename(draft, place);
  } catch {
    const other = await tryUnpacked(place);
    if (other !== null) return other;
    // What is there does not run any more.
    await rm(place, { recursive: true, force: true });
    await rename(draft, place);
  }
  return unpackedServer(place);
}
