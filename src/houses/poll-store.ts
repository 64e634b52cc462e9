import type { Sql } from "../db/client.ts";
import { toWaves, withUnreadable } from "./answer-rows.ts";
import { afterPoll, type Circuit } from "./circuit.ts";
import { saveFeeds } from "./feed-store.ts";
import { endLease, holdsLease, type Lease } from "./lease-store.ts";
import { saveFailures, savePollSums } from "./poll-sums-store.ts";
import { summarizePoll, type AskedTable } from "./poll-summary.ts";

/** What a poll left behind; `waitMs` is how long the house is left alone now, 0 = until its next turn. */
export interface SavedPoll {
  /** Ids of the answers that were stored. */
  payloadIds: bigint[];
  requests: number;
  payloads: number;
  unchanged: number;
  failed: number;
  waitMs: number;
  circuit: Circuit["state"];
}

/**
 * Saves a poll: bodies that differ from the feed's last one, what is known of each feed, the sums, the failures, the
 * circuit and the end of the lease, all in one transaction. Null, with nothing saved, where the lease was lost to
 * another worker. `jitter` is a random number in [0, 1).
 *
 * `feeds.last_answer_at` is the request time of the newest good answer; it goes into each new payload as
 * `previous_requested_at` before it moves on. A 304 or a body equal to the last one counts as good, a failure does not,
 * and neither does a repeat of a body that could not be read. Where each round has its own page it is the request time
 * of the next round's 404, and null once a page is there.
 */
export async function saveAnswers(
  sql: Sql,
  lease: Lease,
  asked: readonly AskedTable[],
  jitter: number,
): Promise<SavedPoll | null> {
  const waves = await toWaves(lease, asked);
  const summary = summarizePoll(withUnreadable(lease, asked, waves.flat()));
  const next = asked.length === 0 ? null : afterPoll(lease.circuit, summary.outcome, jitter);
  return sql.begin(async (transaction) => {
    if (!(await holdsLease(transaction, lease))) return null;
    const payloadIds: bigint[] = [];
    for (const rows of waves) payloadIds.push(...(await saveFeeds(transaction, lease, rows)));
    const payloads = payloadIds.length;
    if (asked.length > 0) await savePollSums(transaction, lease, summary);
    await saveFailures(transaction, lease, asked);
    await endLease(transaction, lease, summary, next);
    return {
      payloadIds,
      requests: asked.length,
      payloads,
      unchanged: asked.filter(({ answer }) => answer.kind !== "failed").length - payloads,
      failed: asked.filter(({ answer }) => answer.kind === "failed").length,
      waitMs: next?.waitMs ?? 0,
      circuit: next?.circuit.state ?? lease.circuit.state,
    };
  });
}
