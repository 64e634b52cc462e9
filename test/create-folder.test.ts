import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { createFolder } from "../src/create-folder.ts";

const run = promisify(execFile);

async function temporary(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "folder-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

it("a folder is created with those above it, and one that exists stays", async () => {
  const folder = join(await temporary(), "a", "b", "c");
  await createFolder(folder, 0o700);
  expect((await stat(join(folder, ".."))).mode & 0o777).toBe(0o700);
  await writeFile(join(folder, "file"), "");
  await createFolder(folder, 0o711);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
});

it("two calls may create the same folder", async () => {
  const folder = join(await temporary(), "a", "b");
  await Promise.all([createFolder(folder), createFolder(folder), createFolder(join(folder, "c"))]);
  expect((await stat(join(folder, "c"))).isDirectory()).toBe(true);
});

it("a file in the place of a folder, and a link to nothing, are refused", async () => {
  const folder = await temporary();
  await writeFile(join(folder, "file"), "");
  await symlink(join(folder, "nothing"), join(folder, "link"));
  await expect(createFolder(join(folder, "file"))).rejects.toMatchObject({ code: "EEXIST" });
  await expect(createFolder(join(folder, "file", "a"))).rejects.toMatchObject({ code: "ENOTDIR" });
  await expect(createFolder(join(folder, "link"))).rejects.toMatchObject({ code: "ENOENT" });
});

// in a process of its own, which can be ended if a call does not return
it.skipIf(!existsSync("/proc/self"))("a data folder in /proc is refused, and does not occupy a processor", async () => {
  const lock = new URL("../src/embedded/lock.ts", import.meta.url).href;
  const script = `
    const { claimDataDir } = await import(${JSON.stringify(lock)});
    await claimDataDir("/proc/data").catch((error) => console.log(error.message));`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], {
    timeout: 10_000,
    killSignal: "SIGKILL",
  });
  expect(stdout).toMatch(
    /^data folder \/proc\/data cannot be written \(ENOENT\): .* set DATA_DIR to another folder\n$/,
  );
});
