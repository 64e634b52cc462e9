import pLimit from "p-limit";
import type { Pipeline } from "../db/client.ts";
import { Gathering } from "../db/gathering.ts";
import type { Query } from "../db/query.ts";
import { codeOf } from "../errors.ts";
import type { LockTimeout } from "../tables/heads-store.ts";
import { endPollStatements, type EndedPoll } from "../houses/polling/poll-store.ts";
import type { CompletePassRows } from "./compute/state.ts";
import { passStatements } from "./stores/write-store.ts";
import type { HeldLease, NotedResponse } from "./stores/write-heads-store.ts";

/** The content of one commit: passes of one poll, and the end of the poll if they are its last. */
export interface Rows {
  passes: readonly CompletePassRows[];
  /** Tables with a response that had nothing new. */
  noted: readonly NotedResponse[];
  /** Null if the responses were stored before. */
  lease: HeldLease | null;
  end: EndedPoll | null;
}

/** Rows to be written. */
export interface Write {
  /** Tables that the rows may be of. */
  tableIds: readonly number[];
  /** Of the payloads to be stored. */
  bytes: number;
  /** It may be held back a moment, so that others share its transaction. */
  mayWait: boolean;
  /** How long it then waits, apart from the others, for a row that another session keeps locked; null: it is rejected. */
  waitsApart: LockTimeout | null;
  /**
   * Computes the rows, immediately before they are sent and again for each attempt: a forecast's time of issue is then
   * that of its transaction, however long the write waited. An error rejects this write alone.
   */
  rows: () => Rows | Promise<Rows>;
}

/** Writes together with others that are ready at the same time; resolves after the commit. */
export type Writer = (write: Write) => Promise<void>;

/** Concurrent transactions, and the writes and bytes of payloads in each. */
const TRANSACTIONS = 2;
const WRITES_AT_ONCE = 50;
const BYTES_AT_ONCE = 8 << 20;

/** A write of more tables or bytes is heavy: one is written at a time, alone, so that the other transaction stays free. */
const LIGHT_TABLES = 20;
const LIGHT_BYTES = 1 << 20;

/** How long writes that may share a transaction, and heavy ones, wait for a row lock of another session, such as an operator's. */
const LOCK_TIMEOUTS = { light: "100ms", heavy: "250ms" };
const LOCK_NOT_AVAILABLE = "55P03";

interface Waiting extends Write {
  resolve: () => void;
  reject: (error: unknown) => void;
}

/**
 * Creates a writer. Writes that wait while transactions run share the next one; if a shared one fails, its writes are
 * tried again in smaller parts: one of fifty that is refused takes 15 transactions. One that waits for a lock is tried
 * once more, for longer if it may, one such write after the other and next to the transactions of the others. (At 67 rounds/s in 1,000
 * houses sharing saves a third of PostgreSQL's time.)
 */
export function createWriter(pipeline: Pipeline): Writer {
  const waiting: Waiting[] = [];
  let running = 0;
  let isHeavyRunning = false;
  const inTurn = pLimit(1);

  const next = () => {
    while (running < TRANSACTIONS && waiting.length > 0) {
      if (mayAllWait(waiting, isHeavyRunning) && gathering.holds()) return;
      const taken = takeSome(waiting, !isHeavyRunning);
      const [first] = taken;
      if (first === undefined) return;
      const heavy = isHeavy(first);
      isHeavyRunning ||= heavy;
      running += 1;
      if (!heavy) gathering.sent(taken.length);
      void commit(taken).finally(() => {
        running -= 1;
        if (heavy) isHeavyRunning = false;
        next();
      });
    }
  };
  const gathering = new Gathering(next);
  const commit = async (writes: readonly Waiting[]): Promise<void> => {
    const made: MadeWrite[] = [];
    for (const write of writes) made.push(...(await makeRows(write)));
    const [first] = made;
    if (first === undefined) return;
    try {
      await send(made, LOCK_TIMEOUTS[isHeavy(first.write) ? "heavy" : "light"]);
    } catch (error) {
      const waitsApart = codeOf(error) === LOCK_NOT_AVAILABLE ? first.write.waitsApart : null;
      if (made.length > 1) for (const part of partsOf(made)) await commit(part.map(({ write }) => write));
      else if (waitsApart !== null) void inTurn(() => commitApart(first.write, waitsApart));
      else first.write.reject(error);
    }
  };
  const commitApart = async (write: Waiting, lockTimeout: LockTimeout): Promise<void> => {
    const made = await makeRows(write);
    if (made.length > 0) await send(made, lockTimeout).catch((error: unknown) => write.reject(error));
  };
  const send = async (made: readonly MadeWrite[], lockTimeout: string): Promise<void> => {
    const rows = made.map((one) => one.rows);
    await pipeline.transact([
      pipeline`select set_config('lock_timeout', ${lockTimeout}, true)`,
      ...statementsOf(pipeline, rows),
    ]);
    for (const { write } of made) write.resolve();
  };
  return (write) =>
    new Promise((resolve, reject) => {
      waiting.push({ ...write, resolve, reject });
      next();
    });
}

interface MadeWrite {
  write: Waiting;
  rows: Rows;
}

async function makeRows(write: Waiting): Promise<MadeWrite[]> {
  try {
    return [{ write, rows: await write.rows() }];
  } catch (error) {
    write.reject(error);
    return [];
  }
}

/** Whether no write is urgent, no heavy one could be written now, and the rest would not fill a transaction. */
function mayAllWait(waiting: readonly Waiting[], isHeavyRunning: boolean): boolean {
  const light = waiting.filter((write) => !isHeavy(write));
  if (light.length < waiting.length && !isHeavyRunning) return false;
  const bytes = light.reduce((sum, write) => sum + write.bytes, 0);
  return light.length < WRITES_AT_ONCE && bytes < BYTES_AT_ONCE && light.every(({ mayWait }) => mayWait);
}

/** Takes the oldest write if it is heavy and may be written, else light ones of different tables in their order. */
function takeSome(waiting: Waiting[], mayBeHeavy: boolean): Waiting[] {
  const [first] = waiting;
  if (mayBeHeavy && first !== undefined && isHeavy(first)) return waiting.splice(0, 1);
  const taken: Waiting[] = [];
  const tables = new Set<number>();
  let bytes = 0;
  for (let at = 0; at < waiting.length && taken.length < WRITES_AT_ONCE;) {
    const write = waiting[at];
    if (write === undefined) break;
    const isApart = write.tableIds.some((tableId) => tables.has(tableId));
    if (isApart || isHeavy(write) || (taken.length > 0 && bytes + write.bytes > BYTES_AT_ONCE)) {
      at += 1;
      continue;
    }
    waiting.splice(at, 1);
    taken.push(write);
    bytes += write.bytes;
    for (const tableId of write.tableIds) tables.add(tableId);
  }
  return taken;
}

function isHeavy({ tableIds, bytes }: Write): boolean {
  return tableIds.length > LIGHT_TABLES || bytes > LIGHT_BYTES;
}

/** Eight parts of fifty; one each when they are few. */
function partsOf<Item>(items: readonly Item[]): Item[][] {
  const size = Math.floor(Math.sqrt(items.length));
  return Array.from({ length: Math.ceil(items.length / size) }, (_, part) =>
    items.slice(part * size, (part + 1) * size),
  );
}

function statementsOf(pipeline: Pipeline, writes: readonly Rows[]): Query<readonly unknown[]>[] {
  const passes = writes.flatMap((write) => write.passes);
  const noted = writes.flatMap((write) => write.noted);
  const leases = writes.flatMap(({ lease }) => lease ?? []);
  const ended = writes.flatMap(({ end }) => end ?? []);
  return [...passStatements(pipeline, passes, leases, noted), ...endPollStatements(pipeline, ended)];
}
