/** Verifies tables in a thread of its own: all in the snapshot of the one who asks. */
import { connect, type Sql } from "../db/client.ts";
import { answerTasks } from "../thread.ts";
import { type TableVerification, verifyTable } from "./verify-table.ts";
import { joinSnapshot, type VerifiedTable } from "./verify-store.ts";

/** A table to verify, and where. */
export interface VerifyTableTask {
  databaseUrl: string;
  /** As `pg_export_snapshot` gave it. */
  snapshot: string;
  table: VerifiedTable;
  unscoredMinutes: number | undefined;
  /** Of the channel that hears of progress. */
  channel: string;
}

/** How far the check of one table is. */
export interface TableProgress {
  tableId: number;
  done: number;
}

let sql: Sql | undefined;

answerTasks(
  async ({
    databaseUrl,
    snapshot,
    table,
    unscoredMinutes,
    channel: name,
  }: VerifyTableTask): Promise<TableVerification> => {
    sql ??= connect(databaseUrl, { name: "verify", max: 1, use: "bulk" });
    const channel = new BroadcastChannel(name);
    try {
      return await joinSnapshot(sql, snapshot, (tx) =>
        verifyTable(tx, table, {
          unscoredMinutes,
          // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel is no window, it has no origin
          progress: (done) => channel.postMessage({ tableId: table.id, done } satisfies TableProgress),
        }),
      );
    } finally {
      channel.close();
    }
  },
);
