import { unlessAborted } from "../abort.ts";
import { isConnectionError } from "../db/errors.ts";
import { codeOf, reasonOf } from "../errors.ts";
import { adapterOf } from "../houses/adapters/index.ts";
import type { HouseItem } from "../houses/contract.ts";
import { excerpt } from "../houses/reading/excerpt.ts";
import { settingsOf, type House } from "../houses/house.ts";
import type { TableSettings } from "../houses/settings/settings.ts";
import { cut, LONGEST_REASON } from "../text.ts";
import { createThread, ThreadBusyError, ThreadLimitError } from "../thread.ts";
import { fromColumns } from "./item-columns.ts";
import type { BodyTask, ReadByThread, ReadTask } from "./read-thread.ts";

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

/** A stored payload: its body, packed by gzip, and the SHA-256 of the unpacked one. */
export interface PackedBody {
  body: Buffer;
  sha256: string;
  receivedAt: string;
  path: string;
}

/** How a table is named: its settings are found by its game and market. */
type NamedTable = { name: string; game: string; market: string };

/** Larger bodies are read in a thread: 32 KiB can take 20 ms, 4 MiB three seconds. 50 rounds are 5 to 20 kB. */
export const LARGEST_HERE = 32 << 10;

const thread = createThread<ReadTask, ReadByThread[]>(new URL("read-thread.ts", import.meta.url), {
  deadlineMs: 10_000,
  idleMs: 120_000,
  maxTasks: 1_000,
  heapMb: 512, // bodies have at most 4 MiB, some 100 MB as objects
});

/**
 * Reads the body of a response with the adapter of its table; a large one in a thread, as {@link readStored} does. An
 * exception of our own code becomes a reason too, so that the payload can be read again after a fix. The result depends
 * on the arguments alone.
 *
 * @throws the signal's reason when it is aborted; ThreadBusyError if too many bodies wait, so try again later
 */
export async function readBody(
  house: House,
  table: NamedTable,
  { body, now, path, kind }: ReceivedBody,
  { signal }: { signal: AbortSignal },
): Promise<ReadResponse> {
  const settings = settingsOf(house, table);
  if (settings === null) return unknownTable(table);
  const options = { path, ...(kind === "history" ? { oldest: OLDEST } : {}) };
  if (body.length > LARGEST_HERE) {
    const task = { bytes: body, body: { packedSha256: null, now, options } };
    const [read] = await readThere(house, settings, [task], signal);
    return read?.() ?? refused(house, ownFault("no result"));
  }
  try {
    const read = adapterOf(settings).read(settings.feed, body, now, options);
    return read.ok ? { ...read, settings } : refused(house, read.reason);
  } catch (error) {
    return { ok: false, reason: ownFault(error) };
  }
}

/**
 * Reads stored payloads of a table, in a thread: a message for each payload would take 1.8 µs more per round. The thread
 * has 10 s and 512 MB, so that a payload that blocks or crashes its reader affects the thread alone; then each is read by
 * itself, up to the first that is stopped again: it is refused, and the payloads after it are not in the result, so that
 * the caller can store those before them first. The items of each are made when its function is called: objects that wait
 * would be copied by the garbage collector.
 *
 * @throws the signal's reason when it is aborted; ThreadBusyError if too many bodies wait, so try again later
 */
export async function readStored(
  house: House,
  table: NamedTable,
  payloads: readonly PackedBody[],
  signal: AbortSignal,
): Promise<(() => ReadResponse)[]> {
  if (payloads.length === 0) return [];
  const settings = settingsOf(house, table);
  if (settings === null) return payloads.map(() => () => unknownTable(table));
  const tasks = payloads.map(({ body, sha256, receivedAt, path }) => ({
    bytes: body,
    body: { packedSha256: sha256, now: receivedAt, options: { path } },
  }));
  return readThere(house, settings, tasks, signal);
}

function unknownTable({ name }: NamedTable): ReadResponse {
  const reason = `${name} is no longer in the houses file; restore it and read this payload again`;
  return { ok: false, reason };
}

function refused(house: House, reason: string): ReadResponse {
  return { ok: false, reason: cut(house.hide(reason), LONGEST_REASON) };
}

async function readThere(
  house: House,
  settings: TableSettings,
  tasks: readonly { bytes: Buffer; body: Omit<BodyTask, "length"> }[],
  signal: AbortSignal,
): Promise<(() => ReadResponse)[]> {
  const read = (some: typeof tasks) => readTogether(house, settings, some, signal);
  if (tasks.length > 1) {
    try {
      return await read(tasks);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ThreadBusyError) throw error; // else each by itself
    }
  }
  const each: (() => ReadResponse)[] = [];
  for (const task of tasks) {
    try {
      each.push(...(await read([task])));
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ThreadBusyError) throw error;
      const isStopped = error instanceof ThreadLimitError;
      const reason = isStopped ? `reading was stopped: ${error.message}` : ownFault(error);
      each.push(() => ({ ok: false, reason }));
      if (isStopped) return each;
    }
  }
  return each;
}

async function readTogether(
  house: House,
  settings: TableSettings,
  tasks: Parameters<typeof readThere>[2],
  signal: AbortSignal,
): Promise<(() => ReadResponse)[]> {
  const { adapter, feed } = settings;
  const bytes = Buffer.concat(tasks.map((task) => task.bytes));
  const bodies = tasks.map((task) => ({ ...task.body, length: task.bytes.length }));
  signal.throwIfAborted();
  const read = await unlessAborted(thread.run({ settings: { adapter, feed }, bytes, bodies }, signal), signal);
  return read.map((one) => () => {
    if (one.ok) return { ok: true, items: fromColumns(one.columns), settings };
    return "reason" in one ? refused(house, one.reason) : { ok: false, reason: ownFault(one.failure) };
  });
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
