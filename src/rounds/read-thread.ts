/** Reads responses in a thread, so that a large or slow one delays no poll of another house. */
import { hash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { reasonOf } from "../errors.ts";
import { adapterOf } from "../houses/adapters/index.ts";
import type { ReadOptions } from "../houses/contract.ts";
import type { TableSettings } from "../houses/settings/settings.ts";
import { runTasks } from "../thread.ts";
import { type ItemColumns, toColumns } from "./item-columns.ts";

/** Bodies of one table, one after the other in `bytes`, and how the table reads them. */
export interface ReadTask {
  settings: Pick<TableSettings, "adapter" | "feed">;
  bytes: Uint8Array;
  bodies: BodyTask[];
}

/** A body; `now` is when it was received. */
export interface BodyTask {
  length: number;
  /** Of the unpacked body, if it is packed by gzip; else null. */
  packedSha256: string | null;
  now: string;
  options: ReadOptions;
}

/** What an adapter read, why it could not, or the failure of our own code. */
export type ReadByThread =
  { ok: true; columns: ItemColumns } | { ok: false; reason: string } | { ok: false; failure: string };

runTasks(({ settings, bytes, bodies }: ReadTask): ReadByThread[] => {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = 0;
  return bodies.map((body) => {
    const start = end;
    end += body.length;
    try {
      return readOne(settings, all.subarray(start, end), body);
    } catch (error) {
      return { ok: false, failure: reasonOf(error) };
    }
  });
});

function readOne(
  settings: ReadTask["settings"],
  given: Buffer,
  { packedSha256, now, options }: BodyTask,
): ReadByThread {
  const body = packedSha256 === null ? given : gunzipSync(given);
  if (packedSha256 !== null && hash("sha256", body) !== packedSha256)
    return { ok: false, reason: "the stored payload differs from what was received (its hash does not match)" };
  const read = adapterOf(settings).read(settings.feed, body, now, options);
  return read.ok ? { ok: true, columns: toColumns(read.items) } : read;
}
