import { readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { processMark } from "../../src/embedded/pids.ts";
import { readRunFile, removeRunFile, type RunFacts, writeRunFile } from "../../src/embedded/run-file.ts";
import { makeFolder } from "./world.ts";

const facts: RunFacts = {
  pid: process.pid,
  started_at: "2026-11-21T04:00:12.123Z",
  version: "1.2.3",
  url: "http://127.0.0.1:3000",
  worker_url: "http://127.0.0.1:3000",
  database_url: "postgres://app:secret@127.0.0.1:5555/roundhouse",
  redis_url: "redis://:secret@127.0.0.1:6666/0",
  demo_house_url: null,
  api_key: "rh_live_0",
};

/** Above every number a system gives to a process. */
const NO_ONE = 2_147_483_647;

it("what an instance writes about itself is what others read", async () => {
  const dataDir = await makeFolder();
  await writeRunFile(dataDir, { ...facts, url: null });
  await writeRunFile(dataDir, facts);
  expect(await readRunFile(dataDir)).toEqual(facts);
});

it("only its user can read it, and no draft remains next to it", async () => {
  const dataDir = await makeFolder();
  await writeRunFile(dataDir, facts);
  expect((await stat(join(dataDir, "run.json"))).mode & 0o777).toBe(0o600);
  expect(await readdir(dataDir)).toEqual(["run.json"]);
});

it("nothing is read if none runs, before and after", async () => {
  const dataDir = await makeFolder();
  expect(await readRunFile(dataDir)).toBeNull();
  expect(await readRunFile(join(dataDir, "missing"))).toBeNull();
  await writeRunFile(dataDir, facts);
  await removeRunFile(dataDir);
  await removeRunFile(dataDir);
  expect(await readRunFile(dataDir)).toBeNull();
});

it("a killed instance is distinguished from a running one", async () => {
  const dataDir = await makeFolder();
  await writeRunFile(dataDir, { ...facts, pid: NO_ONE });
  expect(await readRunFile(dataDir)).toEqual({ dead: NO_ONE });
});

it("a later process with the number of a killed instance is not taken for it", async () => {
  const dataDir = await makeFolder();
  await writeRunFile(dataDir, facts);
  const claim = { pid: process.pid, since: facts.started_at };
  await writeFile(join(dataDir, "lock"), JSON.stringify({ ...claim, mark: "an earlier boot:17" }));
  expect(await readRunFile(dataDir)).toEqual({ dead: process.pid });
  await writeFile(join(dataDir, "lock"), JSON.stringify({ ...claim, mark: await processMark(process.pid) }));
  expect(await readRunFile(dataDir)).toEqual(facts);
});

it.each([
  ["not JSON", "{"],
  ["not ours", `{"name":"something else"}`],
  ["of another version", JSON.stringify({ ...facts, redis_url: undefined })],
])("a file that is %s is refused with what to do", async (_what, text) => {
  const dataDir = await makeFolder();
  await writeFile(join(dataDir, "run.json"), text);
  await expect(readRunFile(dataDir)).rejects.toThrow(
    /run\.json does not look like ours: stop roundhouse, remove the file/,
  );
});

it("a file of another version whose instance is gone is only dead", async () => {
  const dataDir = await makeFolder();
  await writeFile(join(dataDir, "run.json"), JSON.stringify({ pid: NO_ONE }));
  expect(await readRunFile(dataDir)).toEqual({ dead: NO_ONE });
});
