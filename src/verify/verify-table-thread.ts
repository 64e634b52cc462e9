/** Verifies tables in a thread, all in the snapshot of the process that started it. */
import { connect, type Sql } from "../db/client.ts";
import type { Grace } from "../forecasts/score/unscored-store.ts";
import { runTasks } from "../thread.ts";
import { type TableVerification, verifyTable } from "./verify-table.ts";
import type { VerifiedTable } from "./verified-table-store.ts";
import { joinSnapshot } from "./verify-store.ts";

/** A table to verify, and the snapshot to read. */
export interface VerifyTableTask {
  databaseUrl: string;
  /** The value of `pg_export_snapshot`. */
  snapshot: string;
  table: VerifiedTable;
  grace: Grace;
  /** The name of the channel that receives progress. */
  channel: string;
}

/** The progress of one table's check. */
export interface TableProgress {
  tableId: number;
  done: number;
}

let sql: Sql | undefined;

runTasks(
  async ({ databaseUrl, snapshot, table, grace, channel: name }: VerifyTableTask): Promise<TableVerification> => {
    sql ??= connect(databaseUrl, { name: "verify", max: 1, use: "bulk" });
    const channel = new BroadcastChannel(name);
    try {
      return await joinSnapshot(sql, snapshot, (tx) =>
        verifyTable(tx, table, {
          grace,
          // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel is no window, it has no origin
          progress: (done) => channel.postMessage({ tableId: table.id, done } satisfies TableProgress),
        }),
      );
    } finally {
      channel.close();
    }
  },
);
