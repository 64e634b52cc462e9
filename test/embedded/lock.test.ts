import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it, onTestFinished } from "vitest";
import { claimDataDir, readClaim } from "../../src/embedded/lock.ts";
import { makeFolder } from "./world.ts";

/** A process of its own that claims the folder, says so or why not, and stays. */
async function claimElsewhere(dataDir: string) {
  const lock = new URL("../../src/embedded/lock.ts", import.meta.url).href;
  const script = `
    const { claimDataDir } = await import(${JSON.stringify(lock)});
    await claimDataDir(process.argv[1]).then(() => console.log("claimed"), (error) => console.log(error.message));
    setInterval(() => undefined, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script, dataDir]);
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  const [answer] = await once(createInterface(child.stdout), "line");
  const kill = async () => {
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  };
  return { answer: String(answer), pid: child.pid, kill };
}

it("a second claim on a data folder is refused, naming the first and what to do", async () => {
  const dataDir = join(await makeFolder(), "new", "data");
  const release = await claimDataDir(dataDir);
  onTestFinished(release);
  const { answer } = await claimElsewhere(dataDir);
  expect(answer).toMatch(/^another roundhouse \(pid \d+, since 20\d\d-\S+Z\) is using \/.*: stop it, or set DATA_DIR/);
  expect(answer).toContain(`(pid ${process.pid}, `);
  await expect(claimDataDir(dataDir)).rejects.toThrow(`(pid ${process.pid}, `);
});

it("of processes that start at the same moment exactly one gets the folder, and the others name it", async () => {
  const dataDir = await makeFolder();
  const claims = await Promise.all(Array.from({ length: 5 }, () => claimElsewhere(dataDir)));
  const winners = claims.filter(({ answer }) => answer === "claimed");
  expect(winners).toHaveLength(1);
  for (const { answer } of claims.filter((claim) => claim.answer !== "claimed")) {
    expect(answer).toContain(`another roundhouse (pid ${winners[0]?.pid}, since`);
  }
});

it("of claims in one process at the same moment exactly one wins", async () => {
  const dataDir = await makeFolder();
  const claims = await Promise.allSettled(Array.from({ length: 5 }, () => claimDataDir(dataDir)));
  const won = claims.flatMap((claim) => (claim.status === "fulfilled" ? [claim.value] : []));
  expect(won).toHaveLength(1);
  for (const release of won) await release();
});

it("a released folder can be claimed again", async () => {
  const dataDir = await makeFolder();
  const release = await claimDataDir(dataDir);
  await release();
  await release();
  expect(await readClaim(dataDir)).toBeNull();
  await (
    await claimDataDir(dataDir)
  )();
});

it("a folder whose holder was killed is free immediately", async () => {
  const dataDir = await makeFolder();
  const holder = await claimElsewhere(dataDir);
  expect(holder.answer).toBe("claimed");
  await expect(claimDataDir(dataDir)).rejects.toThrow(`(pid ${holder.pid}, `);
  await holder.kill();
  const release = await claimDataDir(dataDir);
  await release();
});

it("the entry of a dead holder does not hold the folder, even if its process id now belongs to another process", async () => {
  const dataDir = await makeFolder();
  const stranger = { pid: process.ppid, mark: "another:1", since: "2026-01-01T00:00:00.000Z" };
  await writeFile(join(dataDir, "lock"), JSON.stringify(stranger));
  const release = await claimDataDir(dataDir);
  expect(await readClaim(dataDir)).toMatchObject({ pid: process.pid });
  await release();
});

it("a data folder that cannot be made is refused with what to do", async () => {
  const file = join(await makeFolder(), "file");
  await writeFile(file, "");
  await expect(claimDataDir(join(file, "data"))).rejects.toThrow(
    /^data folder \/.*\/file\/data cannot be written \(ENOTDIR\): make it writable for user \d+, or set DATA_DIR/,
  );
});

// root writes everywhere, so there is nothing to see as root
if (process.getuid?.() !== 0) {
  it("a data folder of another user is refused with advice", async () => {
    const dataDir = join(await makeFolder(), "data");
    await mkdir(dataDir);
    await chmod(dataDir, 0o500);
    await expect(claimDataDir(dataDir)).rejects.toThrow(/cannot be written \(EACCES\): make it writable for user/);
  });
}
