import type { Transaction } from "../db/client.ts";
import { asError } from "../errors.ts";
import type { PassResult } from "../pass/compute/state.ts";
import { type RoundsCopy, startRoundsCopy } from "../pass/stores/copy-rounds-store.ts";

/** Passes whose rounds go into one COPY, a hundred thousand rounds: what else they change waits in memory. */
const PASSES_OF_COPY = 20;

/** Writes passes of one table, in order. */
export interface FillWriter {
  /** Sends the rounds of a pass; call it again, or `end`, when it has resolved. */
  add(result: PassResult): Promise<void>;
  /** Writes everything that was added. */
  end(): Promise<void>;
  /** Gives up after an error, so that the transaction can be rolled back. */
  abort(error: unknown): Promise<void>;
}

/**
 * Creates a writer that sends the rounds of many passes by one COPY: PostgreSQL stores them while this process computes the
 * next ones. Whatever else a pass changes, `writeRest` writes when the COPY has ended.
 */
export function createFillWriter(
  tx: Transaction,
  tableId: number,
  writeRest: (result: PassResult) => Promise<void>,
): FillWriter {
  let copy: RoundsCopy | null = null;
  let rests: PassResult[] = [];
  const end = async () => {
    await copy?.end();
    copy = null;
    for (const rest of rests) await writeRest(rest);
    rests = [];
  };
  return {
    async add(result) {
      copy ??= await startRoundsCopy(tx, tableId);
      await copy.add(result.rows.rounds);
      rests.push({ ...result, rows: { ...result.rows, rounds: [] } });
      if (rests.length === PASSES_OF_COPY) await end();
    },
    end,
    async abort(error) {
      await copy?.abort(asError(error));
    },
  };
}
