import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { diskProblem, readDisk } from "../../src/housekeeping/disk.ts";

test("a disk with a tenth of its space free is fine, with less it is reported how much, with advice", () => {
  expect(diskProblem("/data", { free: 10e9, total: 100e9 })).toBeNull();
  expect(diskProblem("/data", { free: 9.84e9, total: 100e9 })).toBe(
    "the disk of /data has 9.8 % free (9.8 of 100.0 GB), expected at least 10 %; free space or use a larger disk; a lower PAYLOAD_RETENTION_HOURS deletes only payloads of some days, while rounds, forecasts, scores and the log are kept permanently",
  );
});

test("a disk without a known size, such as some network drives, is no failure", () => {
  expect(diskProblem("/data", { free: 0, total: 0 })).toBeNull();
});

test("a folder that is not there yet is on the disk of its nearest parent", async () => {
  const { total } = await readDisk(join(tmpdir(), "not", "there", "yet"));
  expect(total).toBe((await readDisk(tmpdir())).total);
  expect(total).toBeGreaterThan(0);
});
