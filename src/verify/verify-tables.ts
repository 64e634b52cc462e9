import { randomUUID } from "node:crypto";
import { availableParallelism } from "node:os";
import type { Transaction } from "../db/client.ts";
import type { Grace } from "../forecasts/score/unscored-store.ts";
import { createThread } from "../thread.ts";
import type { VerifiedTable } from "./verified-table-store.ts";
import { exportSnapshot } from "./verify-store.ts";
import type { TableProgress, VerifyTableTask } from "./verify-table-thread.ts";
import { type TableVerification, verifyTable } from "./verify-table.ts";

/** How many threads verify tables, each with its own connection to the database. */
export interface Threads {
  databaseUrl: string;
  /** With fewer rounds and forecasts no thread is used: one takes half a second to start. */
  fromRows?: number;
}

const FROM_ROWS = 100_000;
/** Each takes 300 MB. */
const MOST_THREADS = 4;
const LIMITS = { deadlineMs: 86_400_000, idleMs: 60_000, maxTasks: 1, heapMb: 2_048 };

/** Called with the table, the rounds and forecasts of all tables checked so far, and their total. */
type Progress = (table: string, done: number, total: number) => void;

/**
 * Verifies tables and returns the results in order, up to the first table with a failure. Threads may have checked
 * later tables too; their results are left out, so that the result does not depend on threads.
 */
export async function verifyTables(
  tx: Transaction,
  tables: readonly VerifiedTable[],
  options: { grace: Grace; threads?: Threads | undefined; progress: Progress },
): Promise<TableVerification[]> {
  const { grace, threads, progress } = options;
  const names = new Map(tables.map(({ id, name }) => [id, name]));
  const doneOf = new Map<number, number>();
  const total = tables.reduce((sum, { lastSeq, forecastSeq }) => sum + Number(lastSeq + forecastSeq), 0);
  const report = ({ tableId, done }: TableProgress) => {
    doneOf.set(tableId, done);
    progress(
      names.get(tableId) ?? "",
      [...doneOf.values()].reduce((sum, n) => sum + n, 0),
      total,
    );
  };

  if (threads === undefined || tables.length < 2 || total < (threads.fromRows ?? FROM_ROWS)) {
    const found: TableVerification[] = [];
    for (const table of tables) {
      const one = await verifyTable(tx, table, {
        grace,
        progress: (done) => report({ tableId: table.id, done }),
      });
      found.push(one);
      if (one.failure !== null) break;
    }
    return found;
  }

  const channel = new BroadcastChannel(`verify ${randomUUID()}`);
  channel.addEventListener("message", (event) => report((event as MessageEvent).data as TableProgress));
  const task = { databaseUrl: threads.databaseUrl, snapshot: await exportSnapshot(tx), channel: channel.name };
  const found: TableVerification[] = [];
  const left = tables.entries();
  let isFailed = false;
  const workers = Array.from({ length: Math.min(availableParallelism(), MOST_THREADS, tables.length) }, () =>
    createThread<VerifyTableTask, TableVerification>(new URL("verify-table-thread.ts", import.meta.url), LIMITS),
  );
  try {
    await Promise.all(
      workers.map(async (worker) => {
        for (const [at, table] of left) {
          if (isFailed) return;
          const one = await worker.run({ ...task, table, grace });
          found[at] = one;
          isFailed ||= one.failure !== null;
        }
      }),
    );
  } finally {
    channel.close();
    await Promise.all(workers.map((worker) => worker.close()));
  }
  // a table is started after those before it, so none is missing up to the first failure
  const firstFailed = found.findIndex(({ failure }) => failure !== null);
  return firstFailed === -1 ? found : found.slice(0, firstFailed + 1);
}
