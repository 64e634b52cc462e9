import type { Sql } from "../db/client.ts";
import { toWaves, withUnreadable, type AnswerRow } from "./answer-rows.ts";
import { afterPoll, type Circuit } from "./circuit.ts";
import { saveFeeds } from "./feed-store.ts";
import { endLeases, keepHeld, type EndedPoll } from "./end-lease-store.ts";
import type { Lease } from "./lease-store.ts";
import { saveFailures, savePollSums } from "./poll-sums-store.ts";
import { summarizePoll, type AskedTable } from "./poll-summary.ts";
import { APART, togetherBy } from "../db/together.ts";

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

/** A poll that is to be saved, as far as that can be worked out before. */
interface PreparedPoll extends EndedPoll {
  asked: readonly AskedTable[];
  waves: AnswerRow[][];
}

/** Polls that are saved by one transaction, and the bytes of their bodies. */
const POLLS_AT_ONCE = 50;
const BYTES_AT_ONCE = 8 << 20;

const saveTogether = togetherBy<Sql, PreparedPoll, SavedPoll | null>((sql, polls) => savePolls(sql, polls), {
  apart: saveAlone,
  items: POLLS_AT_ONCE,
  weight: { most: BYTES_AT_ONCE, of: ({ waves }) => bytesOf(waves) },
});

/**
 * Saves a poll: bodies that differ from the feed's last one, what is known of each feed, the sums, the failures, the
 * circuit and the end of the lease, all in one transaction, with those of other houses that come at the same time. Null,
 * with nothing saved, where the lease was lost to another worker. `jitter` is a random number in [0, 1).
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
  return saveTogether(sql, { lease, asked, waves, summary, next });
}

/** Saves a poll that the others must not wait for: somebody holds a row that it writes or refers to. */
async function saveAlone(sql: Sql, poll: PreparedPoll): Promise<SavedPoll | null> {
  const [saved] = await savePolls(sql, [poll], { waits: true });
  return saved === undefined || saved === APART ? null : saved;
}

async function savePolls(
  sql: Sql,
  polls: readonly PreparedPoll[],
  { waits } = { waits: false },
): Promise<(SavedPoll | null | typeof APART)[]> {
  return sql.begin(async (transaction) => {
    const { free: held, busy } = await keepHeld(transaction, polls, { waits });
    const ids = new Map(held.map((poll): [PreparedPoll, bigint[]] => [poll, []]));
    const depth = Math.max(0, ...held.map(({ waves }) => waves.length));
    for (let wave = 0; wave < depth; wave++) {
      const rows = held.flatMap(({ lease, waves }) => (waves[wave] ?? []).map((row) => ({ ...row, lease })));
      const stored = await saveFeeds(transaction, rows);
      for (const [poll, own] of ids) {
        for (const { tableId } of poll.waves[wave] ?? []) {
          const id = stored.get(tableId);
          if (id !== undefined) own.push(id);
        }
      }
    }
    await savePollSums(
      transaction,
      held.filter(({ asked }) => asked.length > 0),
    );
    await saveFailures(transaction, held);
    await endLeases(transaction, held);
    return polls.map((poll) => {
      if (busy.includes(poll)) return APART;
      const payloadIds = ids.get(poll);
      return payloadIds === undefined ? null : savedPoll(poll, payloadIds);
    });
  });
}

function savedPoll({ lease, asked, next }: PreparedPoll, payloadIds: bigint[]): SavedPoll {
  const failed = asked.filter(({ answer }) => answer.kind === "failed").length;
  return {
    payloadIds,
    requests: asked.length,
    payloads: payloadIds.length,
    unchanged: asked.length - failed - payloadIds.length,
    failed,
    waitMs: next?.waitMs ?? 0,
    circuit: next?.circuit.state ?? lease.circuit.state,
  };
}

function bytesOf(waves: readonly (readonly AnswerRow[])[]): number {
  return waves.flat().reduce((sum, { body }) => sum + (body?.length ?? 0), 0);
}
