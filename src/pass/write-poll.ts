import type { Lease } from "../houses/polling/lease-store.ts";
import type { EndedPoll } from "../houses/polling/poll-store.ts";
import { ownFault } from "../rounds/read-response.ts";
import { Slices } from "../slices.ts";
import { pass } from "./compute/pass.ts";
import type { Passes } from "./passes.ts";
import type { ReadOne, ReadWave } from "./read-poll.ts";
import type { PassResult, PassTime } from "./compute/state.ts";
import { fromDatabase, laterBy } from "./compute/times.ts";
import type { Write } from "./writer.ts";

/** A response with the result of its pass. */
export interface ComputedPass extends ReadOne {
  result: PassResult;
}

/** The queue whose pausing leaves forecasts that ended unsettled. */
const SETTLING = "score-accuracy";

/** Time and circumstances of passes now: database time since the lease was taken, and whether forecasts are settled. */
export function timeOf({ now, takenAt, paused }: Lease): Omit<PassTime, "tables" | "mayIssue"> {
  return {
    issuedAt: laterBy(fromDatabase(now), performance.now() - takenAt),
    maySettle: !paused.includes(SETTLING),
  };
}

/**
 * Passes of responses. A response that a pass cannot process, or whose error is `keep`, is stored unread with the
 * error.
 */
export async function computePasses(
  read: readonly ReadOne[],
  { keep, ...at }: PassTime & { keep: unknown },
): Promise<ComputedPass[]> {
  const slices = new Slices();
  const computed: ComputedPass[] = [];
  for (const one of read) {
    await slices.next();
    computed.push(computePass(one, at, keep));
  }
  return computed;
}

function computePass(one: ReadOne, at: PassTime, keep: unknown): ComputedPass {
  if (keep !== null) return storeUnread(one, at, keep);
  try {
    return { ...one, result: pass(one.before, one.response, at) };
  } catch (error) {
    return storeUnread(one, at, error);
  }
}

function storeUnread({ response, ...one }: ReadOne, at: PassTime, error: unknown): ComputedPass {
  const unread = { ...response, read: null };
  const { rows, ...result } = pass(one.before, unread, at);
  const payloads = rows.payloads.map((payload) => ({ ...payload, error: ownFault(error) }));
  return { ...one, response: unread, result: { ...result, rows: { ...rows, payloads } } };
}

interface ToWrite {
  taken: readonly ComputedPass[];
  lease: Lease;
  end: EndedPoll | null;
}

/** Writes what is computed when its transaction begins, and then keeps the states after it. */
export async function writePoll<Computed extends ToWrite>(
  { write, states }: Passes,
  { read, noted, ...waits }: Pick<ReadWave, "read" | "noted"> & Pick<Write, "mayWait" | "waitsApart">,
  compute: () => Computed | Promise<Computed>,
): Promise<Computed> {
  let written = null as Computed | null;
  const stored = noted.filter(({ isStored }) => isStored);
  const bodies = new Set(read.flatMap(({ response }) => response.payload?.body ?? []));
  await write({
    tableIds: [
      ...read.map(({ before }) => before.table.tableId),
      ...stored.map(({ received }) => received.asked.tableId),
    ],
    bytes: [...bodies].reduce((sum, { length }) => sum + length, 0),
    mayWait: waits.mayWait,
    waitsApart: waits.waitsApart,
    rows: async () => {
      written = await compute();
      const { lease, taken, end } = written;
      return {
        passes: taken.map(({ result }) => result.rows),
        noted: stored.map(({ received, version, respondedAt }) => {
          return { tableId: received.asked.tableId, version, respondedAt };
        }),
        lease,
        end,
      };
    },
  });
  if (written === null) throw new Error("expected the writer to compute the rows before it commits them");
  for (const { result } of written.taken) states.keep(result.state);
  for (const { before, respondedAt, isStored } of noted) {
    if (before === null) continue;
    const notedAt = isStored ? respondedAt : before.notedAt;
    states.keep({ ...before, head: { ...before.head, respondedAt }, notedAt });
  }
  return written;
}
