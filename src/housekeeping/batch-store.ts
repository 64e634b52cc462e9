import type { Sql, Transaction } from "../db/client.ts";
import { codeOf } from "../errors.ts";
import { BATCH, BATCH_TIMEOUT_MS, BATCHES_PER_RUN, LOCK_TIMEOUT_MS } from "./limits.ts";

/** What came of one kind of tidying in one run. */
export interface Tidied {
  rows: number;
  /** `done`; `more` where the next hour continues; `busy` where someone held a row for too long, and nothing is lost by it. */
  state: "done" | "more" | "busy";
}

/** A lock that was not had in time, and two who waited for each other. */
const IN_USE = ["55P03", "40P01"];

/**
 * Repeats a batch, each in its own transaction, until it did less than its limit or may not continue. Stopped between or
 * within two batches, the next run continues. A batch waits for no lock longer than a second, and takes no longer than
 * fifteen.
 */
export async function inBatches(
  sql: Sql,
  signal: AbortSignal,
  batch: (tx: Transaction) => Promise<number>,
  mayContinue: (batches: number) => boolean = (batches) => batches < BATCHES_PER_RUN,
): Promise<Tidied> {
  let rows = 0;
  for (let done = 0; mayContinue(done); done += 1) {
    signal.throwIfAborted();
    try {
      const count = await sql.begin(async (tx) => {
        await tx`
          select
            set_config('lock_timeout', ${`${LOCK_TIMEOUT_MS}ms`}, true),
            set_config('statement_timeout', ${`${BATCH_TIMEOUT_MS}ms`}, true)`;
        return batch(tx);
      });
      rows += count;
      if (count < BATCH) return { rows, state: "done" };
    } catch (error) {
      if (!IN_USE.includes(codeOf(error))) throw error;
      return { rows, state: "busy" };
    }
  }
  return { rows, state: "more" };
}
