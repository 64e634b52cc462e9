import type { Pipeline } from "../db/client.ts";
import type { Query } from "../db/query.ts";
import { endPollStatements, type EndedPoll } from "../houses/polling/poll-store.ts";
import type { CompletePassRows } from "./state.ts";
import { passStatements, type HeldLease } from "./write-store.ts";

/** What is committed as a whole: passes of one poll, and the end of the poll when they are its last. */
export interface Write {
  passes: readonly CompletePassRows[];
  /** Empty when the responses were stored before. */
  lease: HeldLease | null;
  end: EndedPoll | null;
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

/** How long a shared write waits for a row lock of another session, such as an operator's; a single one has the pool's limit. */
const LOCK_TIMEOUT = "100ms";

interface Waiting extends Write {
  resolve: () => void;
  reject: (error: unknown) => void;
}

/**
 * Makes a writer. What waits while transactions run shares the next one; when a shared one fails, each of its writes is
 * tried alone, once. (At 67 rounds/s in 1,000 houses sharing saves a third of PostgreSQL's time.)
 */
export function createWriter(pipeline: Pipeline): Writer {
  const waiting: Waiting[] = [];
  let running = 0;
  let isHeavyRunning = false;

  const next = () => {
    while (running < TRANSACTIONS) {
      const taken = takeSome(waiting, !isHeavyRunning);
      const [first] = taken;
      if (first === undefined) return;
      const heavy = isHeavy(first);
      isHeavyRunning ||= heavy;
      running += 1;
      void commit(taken).finally(() => {
        running -= 1;
        if (heavy) isHeavyRunning = false;
        next();
      });
    }
  };
  const commit = async (writes: readonly Waiting[]): Promise<void> => {
    try {
      await pipeline.transact(statementsOf(pipeline, writes));
      for (const { resolve } of writes) resolve();
    } catch (error) {
      if (writes.length === 1) writes[0]?.reject(error);
      else for (const write of writes) await commit([write]);
    }
  };
  return (write) =>
    new Promise((resolve, reject) => {
      waiting.push({ ...write, resolve, reject });
      next();
    });
}

/** Takes the write that came first when it is heavy and may be, else light ones of different tables in their order. */
function takeSome(waiting: Waiting[], mayBeHeavy: boolean): Waiting[] {
  const [first] = waiting;
  if (mayBeHeavy && first !== undefined && isHeavy(first)) return waiting.splice(0, 1);
  const taken: Waiting[] = [];
  const tables = new Set<number>();
  let bytes = 0;
  for (let at = 0; at < waiting.length && taken.length < WRITES_AT_ONCE;) {
    const write = waiting[at];
    if (write === undefined) break;
    const size = sizeOf(write);
    const isApart = write.passes.some(({ tableId }) => tables.has(tableId));
    if (isApart || isHeavy(write) || (taken.length > 0 && bytes + size > BYTES_AT_ONCE)) {
      at += 1;
      continue;
    }
    waiting.splice(at, 1);
    taken.push(write);
    bytes += size;
    for (const { tableId } of write.passes) tables.add(tableId);
  }
  return taken;
}

function isHeavy(write: Write): boolean {
  return write.passes.length > LIGHT_TABLES || sizeOf(write) > LIGHT_BYTES;
}

function sizeOf({ passes }: Write): number {
  const bodies = new Set(passes.flatMap(({ payloads }) => payloads.map(({ body }) => body)));
  return [...bodies].reduce((sum, { length }) => sum + length, 0);
}

function statementsOf(pipeline: Pipeline, writes: readonly Write[]): Query<readonly unknown[]>[] {
  const passes = writes.flatMap((write) => write.passes);
  const leases = writes.flatMap(({ lease }) => lease ?? []);
  const ended = writes.flatMap(({ end }) => end ?? []);
  return [
    ...(writes.length > 1 ? [pipeline`select set_config('lock_timeout', ${LOCK_TIMEOUT}, true)`] : []),
    ...passStatements(pipeline, passes, leases),
    ...endPollStatements(pipeline, ended),
  ];
}
