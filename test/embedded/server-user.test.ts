import { chmod, chown, cp, mkdir, readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import postgres from "postgres";
import { describe, expect, it, onTestFinished } from "vitest";
import { startPostgres } from "../../src/embedded/postgres.ts";
import { preparePostgres } from "../../src/embedded/postgres-binaries.ts";
import { keepLines, makeFolder, processesOf } from "./world.ts";

/** An account that every system has, as a person's would be. */
const SOMEBODY = 1;

async function start(dataDir: string, reach: { farFolder?: string } = {}) {
  const said: string[] = [];
  const server = await startPostgres({ dataDir, say: keepLines(said), durable: false, reach });
  onTestFinished(() => server.stop());
  const sql = postgres(server.url, { max: 1, onnotice: () => undefined });
  try {
    await sql`create table if not exists starts (at timestamptz default now())`;
    await sql`insert into starts default values`;
    const [row] = await sql<{ count: number }[]>`select count(*)::int as count from starts`;
    return { said, starts: row?.count, stop: () => server.stop() };
  } finally {
    await sql.end();
  }
}

/** A data folder that others may pass through, or one behind a door that only root opens. */
async function makePlaces() {
  const folder = await makeFolder();
  await chmod(folder, 0o755);
  const [open, closed, farFolder] = [join(folder, "open"), join(folder, "private", "closed"), join(folder, "far")];
  await mkdir(open);
  await mkdir(closed, { recursive: true });
  await chmod(join(folder, "private"), 0o700);
  return { open, closed, farFolder };
}

const ownerOf = async (path: string) => (await stat(path)).uid;

describe.runIf(process.getuid?.() === 0)("started by root, PostgreSQL", () => {
  it("[SUPERUSER] runs as the user nobody, on data that belong to nobody", async () => {
    const { open, farFolder } = await makePlaces();
    const { said } = await start(open, { farFolder });
    expect(said).toEqual([`making the private PostgreSQL in ${open}/pg`]);
    expect(await ownerOf(join(open, "pg"))).toBe(65534);
    const owners = [...(await processesOf(open)).keys()].map((pid) => ownerOf(`/proc/${pid}`));
    expect(new Set(await Promise.all(owners))).toEqual(new Set([65534]));
  });

  it("keeps its data in a far folder, reported and found again, if nobody cannot reach the data folder", async () => {
    const { closed, farFolder } = await makePlaces();
    const first = await start(closed, { farFolder });
    const place = join(farFolder, closed);
    expect(first.said[0]).toBe(`PostgreSQL keeps its data in ${place}, since user 65534 cannot reach ${closed}`);
    expect(await readdir(closed)).not.toContain("pg");
    // A look at the processes still shows whose they are.
    expect((await processesOf(closed)).size).toBeGreaterThan(0);
    await first.stop();
    expect((await start(closed, { farFolder })).starts).toBe(2);
  });

  it("continues as nobody with data that belong to root", async () => {
    const { open, farFolder } = await makePlaces();
    const first = await start(open, { farFolder });
    await first.stop();
    for (const path of [...(await readdir(join(open, "pg"), { recursive: true })), "."]) {
      await chown(join(open, "pg", path), 0, 0);
    }
    expect((await start(open, { farFolder })).starts).toBe(2);
    expect(await ownerOf(join(open, "pg", "base"))).toBe(65534);
  });

  it("runs as the owner of the data if a person made them", async () => {
    const { open, farFolder } = await makePlaces();
    const first = await start(open, { farFolder });
    await first.stop();
    for (const path of [...(await readdir(join(open, "pg"), { recursive: true })), "."]) {
      await chown(join(open, "pg", path), SOMEBODY, SOMEBODY);
    }
    expect((await start(open, { farFolder })).starts).toBe(2);
    expect(await ownerOf(join(open, "pg"))).toBe(SOMEBODY);
  });

  it("is copied to a folder from which nobody can run it, if npm put it out of reach or under a strict umask", async () => {
    const { open, closed } = await makePlaces();
    const own = await preparePostgres({ folder: open, user: { kind: "self" } });
    const native = join(closed, "native");
    await cp(join(dirname(own.postgres), ".."), native, { recursive: true });
    await chmod(join(native, "bin", "postgres"), 0o700);
    await chmod(join(native, "share"), 0o700);
    const home = { folder: open, user: { kind: "other", uid: 65534, gid: 65534 } } as const;
    const copied = await preparePostgres(home, { native, version: "18.0.0" });
    expect(copied.postgres).toBe(join(open, "pg-native-18.0.0", "bin", "postgres"));
    expect((await stat(join(open, "pg-native-18.0.0", "share"))).mode & 0o777).toBe(0o755);
    expect(await preparePostgres(home, { native, version: "18.0.0" })).toEqual(copied);
    expect((await readdir(open)).toSorted()).toEqual(["pg-lib", "pg-native-18.0.0"]);
  });

  it("refuses to start empty if its data are out of reach", async () => {
    const { closed, farFolder } = await makePlaces();
    await mkdir(join(closed, "pg"));
    const attempt = start(closed, { farFolder });
    await expect(attempt).rejects.toThrow(/the database in .*closed cannot be reached by user 65534/);
    await expect(stat(farFolder)).rejects.toThrow("ENOENT");
  });
});
