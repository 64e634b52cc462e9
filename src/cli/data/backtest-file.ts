import { open, rename, type FileHandle } from "node:fs/promises";
import { codeOf } from "../../errors.ts";
import type { BacktestFile, FileMark } from "../../calibration/manual-calibration.ts";
import { FORECAST_COLUMNS } from "../../forecasts/chain/export-store.ts";
import { spreadsheetField } from "../../csv.ts";

/**
 * The CSV of a run's forecasts. It is written to `….run-N.partial` and renamed when it is complete, so concurrent runs
 * with the same output file do not mix; the last one to finish replaces the file.
 *
 * @param run the number of the run
 * @param mark null for a new file; else the checkpoint, to which the file is truncated
 * @throws Error if the file cannot be written, is shorter than the checkpoint, or has other lines
 */
export async function openBacktestFile(path: string, run: string, mark: FileMark | null): Promise<BacktestFile> {
  const partial = `${path}.run-${run}.partial`;
  let handle: FileHandle | null = mark === null ? await open(partial, "w") : await reopen(path, partial, mark);
  const file = handle;
  let written = mark?.bytes ?? 0;

  async function append(text: string): Promise<void> {
    const data = Buffer.from(text, "utf8");
    for (let at = 0; at < data.length;) {
      const { bytesWritten } = await file.write(data, at, data.length - at, written);
      at += bytesWritten;
      written += bytesWritten;
    }
  }
  async function close(): Promise<void> {
    await handle?.close();
    handle = null;
  }

  if (mark === null) await append(`${FORECAST_COLUMNS.join(",")}\n`);
  return {
    write: (rows) =>
      append(
        rows.map((row) => `${FORECAST_COLUMNS.map((column) => spreadsheetField(row[column])).join(",")}\n`).join(""),
      ),
    async mark() {
      await file.datasync();
      return written;
    },
    async finish() {
      await file.datasync();
      await close();
      await rename(partial, path);
    },
    close,
  };
}

async function reopen(path: string, partial: string, mark: FileMark): Promise<FileHandle> {
  // with a header alone it may be the file of any run
  if (mark.lastHash !== null && !(await holds(partial, mark)) && (await holds(path, mark))) {
    await rename(path, partial); // a process that was killed after the rename but before the end of the run
  }
  if (!(await holds(partial, mark))) {
    throw new Error(
      `expected ${partial} with at least ${mark.bytes} bytes of the run, found fewer or others; start a new run`,
    );
  }
  const handle = await open(partial, "r+");
  await handle.truncate(mark.bytes);
  return handle;
}

/** True if the file has the lines of a mark: each hash depends on all lines before it. */
async function holds(path: string, { bytes, lastHash }: FileMark): Promise<boolean> {
  const expected = Buffer.from(`,${lastHash ?? FORECAST_COLUMNS.at(-1)}\n`, "utf8");
  let handle: FileHandle;
  try {
    handle = await open(path, "r");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
  try {
    const found = Buffer.alloc(expected.length);
    const { bytesRead } = await handle.read(found, 0, found.length, Math.max(0, bytes - found.length));
    return bytesRead === found.length && found.equals(expected);
  } finally {
    await handle.close();
  }
}
