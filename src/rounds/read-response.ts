import { isConnectionError } from "../db/errors.ts";
import { codeOf, reasonOf } from "../errors.ts";
import { adapterOf } from "../houses/adapters/index.ts";
import type { HouseItem, ReadResponse as ReadByAdapter } from "../houses/contract.ts";
import { excerpt } from "../houses/reading/excerpt.ts";
import { settingsOf, type House } from "../houses/house.ts";
import type { TableSettings } from "../houses/settings/settings.ts";
import { cut, LONGEST_REASON } from "../text.ts";
import { createThread, ThreadLimitError } from "../thread.ts";
import { QuarantinedItem } from "./lists/quarantined-item.ts";
import type { ReadByThread, ReadTask } from "./read-thread.ts";

/** A response as its adapter reads it, or why it cannot be read. */
export type ReadResponse = { ok: true; items: HouseItem[]; settings: TableSettings } | { ok: false; reason: string };

/** No crash game was played earlier; times of history pages must be later than this. */
const OLDEST = "2010-01-01T00:00:00Z";

/** A response body; `now` (ISO 8601) is when it was received. */
export interface ReceivedBody {
  body: Buffer;
  now: string;
  path: string;
  kind: "poll" | "history";
}

/** Larger bodies are read in a thread: 32 KiB can take 20 ms, 4 MiB three seconds. 50 rounds are 5 to 20 kB. */
export const LARGEST_HERE = 32 << 10;

const thread = createThread<ReadTask, ReadByThread>(new URL("read-thread.ts", import.meta.url), {
  deadlineMs: 10_000,
  idleMs: 120_000,
  maxTasks: 1_000, // the bytes that polls hold at one time are bounded
  heapMb: 512, // bodies have at most 4 MiB, some 100 MB as objects
});

/**
 * Reads the body of a response with the adapter of its table. An exception of our own code becomes a reason too, so
 * that the payload can be read again after a fix. The result depends on the arguments alone.
 *
 * A large body, or any body if `isSuspect`, is read in a thread, within 10 s and 512 MB: a body that crashes or blocks
 * its reader affects the thread alone.
 *
 * @throws the signal's reason when it is aborted, and nothing else
 */
export async function readBody(
  house: House,
  table: { name: string; game: string; market: string },
  { body, now, path, kind }: ReceivedBody,
  { signal, isSuspect = false }: { signal: AbortSignal; isSuspect?: boolean },
): Promise<ReadResponse> {
  const settings = settingsOf(house, table);
  if (settings === null) {
    const reason = `${table.name} is no longer in the houses file; restore it and read this payload again`;
    return { ok: false, reason };
  }
  try {
    const options = { path, ...(kind === "history" ? { oldest: OLDEST } : {}) };
    const task = { settings: { adapter: settings.adapter, feed: settings.feed }, body, now, options };
    const read = isSuspect || body.length > LARGEST_HERE ? await readThere(task, signal) : readHere(task);
    return read.ok ? { ...read, settings } : { ok: false, reason: cut(house.hide(read.reason), LONGEST_REASON) };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ThreadLimitError)) return { ok: false, reason: ownFault(error) };
    return { ok: false, reason: `reading was stopped: ${error.message}` };
  }
}

function readHere({ settings, body, now, options }: ReadTask & { body: Buffer }): ReadByAdapter {
  return adapterOf(settings).read(settings.feed, body, now, options);
}

async function readThere(task: ReadTask, signal: AbortSignal): Promise<ReadByAdapter> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    const read = await Promise.race([thread.run(task), aborted]);
    if (!read.ok) return read;
    return { ok: true, items: read.items.map((item) => ({ ...item, raw: new QuarantinedItem(item.raw) })) };
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** The reason why a response is refused if our own code failed on it. */
export function ownFault(error: unknown): string {
  const reason = excerpt(reasonOf(error), 300);
  return cut(`our own code failed on this payload; read it again after the fix: ${reason}`, LONGEST_REASON);
}

/**
 * Whether storing the response again would fail again: the error was no lost connection, deadlock, limit, shutdown or
 * full disk.
 */
export function isOwnFault(error: unknown): boolean {
  return !isConnectionError(error) && !/^(?:40|53|55|57|58)|^ABORT_ERR$/.test(codeOf(error));
}
