import { chmod, mkdir, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { findRedis } from "../../src/embedded/redis-binary.ts";
import { reasonOf } from "../../src/errors.ts";
import { makeFolder } from "./world.ts";

const SERVER = `#!/bin/sh\\necho "Redis server v=7.0.15 bits=64"\\n`;

/**
 * A machine of its own: programs by name, and folders for data and cache. `fetches` tells how often apt brought
 * packages.
 */
async function makeMachine(programs: Record<string, string>) {
  const folder = await makeFolder();
  const [bin, dataDir, cacheDir] = [join(folder, "bin"), join(folder, "data"), join(folder, "cache")];
  await mkdir(bin);
  await mkdir(dataDir);
  const install = async (name: string, script: string) => {
    await writeFile(join(bin, name), `#!/bin/sh\n${script.replaceAll("MACHINE", folder)}\n`);
    await chmod(join(bin, name), 0o755);
  };
  for (const [name, script] of Object.entries(programs)) await install(name, script);
  const said: string[] = [];
  const find = () => findRedis({ dataDir, cacheDir, say: (line) => said.push(line), searchPath: bin });
  const fetches = async () =>
    (await readFile(join(folder, "fetched"), "utf8").catch(() => "")).trim().split("\n").length;
  return { find, said, bin, dataDir, cacheDir, install, fetches };
}

/** Debian's tools, with a package that holds a server in the form of a script. */
const debian = {
  "apt-get": `case "$*" in *download*) : > redis-tools.deb; echo x >> MACHINE/fetched;; esac`,
  "apt-cache": `echo "  Depends: libc6"; echo "  Depends: libssl3"`,
  "dpkg-deb": `mkdir -p "$3/usr/bin" "$3/usr/lib/x86_64-linux-gnu"
    printf '${SERVER}' > "$3/usr/bin/redis-check-rdb"; chmod +x "$3/usr/bin/redis-check-rdb"`,
};

const answers = `echo "Redis server v=7.2.4 sha=0"`;

it("an installed server is used, redis-server before all others", async () => {
  const machine = await makeMachine({ ...debian, "valkey-server": answers });
  expect(await machine.find()).toEqual({ command: join(machine.bin, "valkey-server"), env: {} });
  await machine.install("redis-server", answers);
  expect(await machine.find()).toEqual({ command: join(machine.bin, "redis-server"), env: {} });
  expect(machine.said).toEqual([]);
});

it("an installed redis-check-rdb is started under the server's name", async () => {
  const asServer = `case "$0" in */redis-server) ${answers};; *) echo "this is redis-check-rdb"; exit 1;; esac`;
  const machine = await makeMachine({ "redis-check-rdb": asServer });
  expect(await machine.find()).toEqual({ command: join(machine.dataDir, "bin", "redis-server"), env: {} });
  await machine.find();
});

it("an installed server that does not run is passed over", async () => {
  const machine = await makeMachine({ "redis-server": "exit 127", "valkey-server": answers });
  expect((await machine.find()).command).toBe(join(machine.bin, "valkey-server"));
});

it("without a server and without apt the message names every way out", async () => {
  const machine = await makeMachine({});
  const error = await machine.find().catch(reasonOf);
  expect(error).toMatch(/^no redis-server on this machine: /);
  for (const way of ["brew install redis", "apt-get install redis-server", "docker compose up", "REDIS_URL"]) {
    expect(error).toContain(way);
  }
});

it("the packages are fetched once for all data folders, with a word about it", async () => {
  const machine = await makeMachine(debian);
  const first = await machine.find();
  expect(first.command.startsWith(machine.cacheDir)).toBe(true);
  expect(machine.said).toEqual([expect.stringMatching(/fetching Redis .* with apt; nothing is installed/)]);
  expect(await machine.find()).toEqual(first);
  expect(await machine.fetches()).toBe(1);
  expect(machine.said).toHaveLength(1);
  expect(await readdir(machine.cacheDir)).toHaveLength(1);
});

it("two concurrent fetches both end with the same complete copy", async () => {
  const machine = await makeMachine(debian);
  const [one, other] = await Promise.all([machine.find(), machine.find()]);
  expect(one).toEqual(other);
  expect(await readdir(machine.cacheDir)).toHaveLength(1);
});

it("a cached copy that does not run any more is fetched again", async () => {
  const machine = await makeMachine(debian);
  const { command } = await machine.find();
  await rm(command);
  expect((await machine.find()).command).toBe(command);
  expect(await machine.fetches()).toBe(2);
});

it("what a killed fetch left is swept, and one that is at work is not", async () => {
  const machine = await makeMachine(debian);
  const name = "redis-debian12-x64";
  for (const draft of [`${name}.AbCd12`, `${name}.Fresh1`])
    await mkdir(join(machine.cacheDir, draft, "apt"), { recursive: true });
  await utimes(join(machine.cacheDir, `${name}.AbCd12`), 0, 0);
  await machine.find();
  expect(await readdir(machine.cacheDir)).toContain(`${name}.Fresh1`);
  expect(await readdir(machine.cacheDir)).not.toContain(`${name}.AbCd12`);
});

it("a cache that cannot be written gives way to the data folder", async () => {
  const machine = await makeMachine(debian);
  await writeFile(machine.cacheDir, "a file where the folder should be");
  const { command } = await machine.find();
  expect(command.startsWith(machine.dataDir)).toBe(true);
  expect((await machine.find()).command).toBe(command);
  expect(await machine.fetches()).toBe(1);
});

it("libraries that a server still misses are fetched too, never the C library", async () => {
  const machine = await makeMachine({
    ...debian,
    "apt-get": `case "$*" in *download*libssl3*) : > libssl3.deb; case "$*" in *libc6*) exit 9;; esac;; *download*) : > redis-tools.deb;; esac`,
    "dpkg-deb": `mkdir -p "$3/usr/bin" "$3/usr/lib/x86_64-linux-gnu"
      case "$2" in
        *libssl3*) printf '${SERVER}' > "$3/usr/bin/redis-check-rdb";;
        *) printf '#!/bin/sh\\necho "libssl.so.3: not found" >&2\\nexit 127\\n' > "$3/usr/bin/redis-check-rdb";;
      esac
      chmod +x "$3/usr/bin/redis-check-rdb"`,
  });
  expect((await machine.find()).command).toMatch(/usr\/bin\/redis-server$/);
});

it("an update that partly fails does no harm, and its output is shown if the packages are missing", async () => {
  const broken = `case "$*" in *update*) echo "E: one source is gone" >&2; exit 100;; *) ${debian["apt-get"]};; esac`;
  const lucky = await makeMachine({ ...debian, "apt-get": broken });
  await lucky.find();
  const offline = await makeMachine({ ...debian, "apt-get": `echo "E: no way to $*" >&2; exit 100` });
  const error = await offline.find().catch(reasonOf);
  expect(error).toMatch(/none could be fetched; .*REDIS_URL.*E: no way to .*update.*E: no way to .*download/s);
  expect(await readdir(offline.cacheDir)).toEqual([]);
});
