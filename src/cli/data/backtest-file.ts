import { open, rename, stat, type FileHandle } from "node:fs/promises";
import { codeOf } from "../../errors.ts";
import type { BacktestFile } from "../../calibration/manual-calibration.ts";
import { FORECAST_COLUMNS } from "../../forecasts/chain/export-store.ts";
import { spreadsheetField } from "../../csv.ts";

/**
 * The CSV of a run's forecasts. It grows beside its name, as `….run-N.partial`, and takes the name when it is whole: runs
 * that write to one name do not meet before, and the last to end has it.
 *
 * @param run whose file it is
 * @param bytes null for a new file; else what was marked, to which it is cut back
 * @throws Error where it cannot be written, or where less than was marked is there
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
    await rename(path, partial); // killed after the file had its name, before the run was done
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
