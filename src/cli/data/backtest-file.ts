import { open, rename, stat, type FileHandle } from "node:fs/promises";
import { codeOf } from "../../errors.ts";
import type { BacktestFile } from "../../calibration/manual-calibration.ts";
import { FORECAST_COLUMNS } from "../../forecasts/chain/export-store.ts";
import { spreadsheetField } from "../../csv.ts";

/**
 * The CSV of a run's forecasts. It is written to `….run-N.partial` and renamed when it is complete, so concurrent runs
 * with the same output file do not mix; the last one to finish replaces the file.
 *
 * @param run the number of the run
 * @param bytes null for a new file; else the checkpoint, to which the file is truncated
 * @throws Error if the file cannot be written or is shorter than the checkpoint
 */
export async function openBacktestFile(path: string, run: string, bytes: number | null): Promise<BacktestFile> {
  const partial = `${path}.run-${run}.partial`;
  let handle: FileHandle | null = bytes === null ? await open(partial, "w") : await reopen(path, partial, bytes);
  const file = handle;
  let written = bytes ?? 0;

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

  if (bytes === null) await append(`${FORECAST_COLUMNS.join(",")}\n`);
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

async function reopen(path: string, partial: string, bytes: number): Promise<FileHandle> {
  if (!(await has(partial, bytes)) && (await has(path, bytes))) {
    await rename(path, partial); // a process that was killed after the rename but before the end of the run
  }
  if (!(await has(partial, bytes))) {
    throw new Error(`expected ${partial} with at least ${bytes} bytes of the run, found less; start a new run`);
  }
  const handle = await open(partial, "r+");
  await handle.truncate(bytes);
  return handle;
}

async function has(path: string, bytes: number): Promise<boolean> {
  try {
    return (await stat(path)).size >= bytes;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}
