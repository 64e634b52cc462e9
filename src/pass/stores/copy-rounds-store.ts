import { copyField, copyLines } from "../../db/copy.ts";
import type { Transaction } from "../../db/client.ts";
import type { RoundRow } from "../compute/rows.ts";

/** Stores rounds of a table by COPY, which takes about half as long as an insert when there are thousands. */
export async function copyRounds(tx: Transaction, tableId: number, rounds: readonly RoundRow[]): Promise<void> {
  const copy = await tx`
    copy rounds (
      table_id, seq, ordinal, round_id, hundredths, raw_value, palette, color, source, requested_at, received_at,
      occurred_at, absent_at, after_gap, late, verified, proof_hash, history_hash
    ) from stdin`.writable();
  await copyLines(copy, rounds.map((round) => lineOf(tableId, round)).join(""));
}

function lineOf(tableId: number, r: RoundRow): string {
  return (
    `${tableId}\t${r.seq}\t${r.ordinal ?? NULL}\t${copyField(r.roundId)}\t${r.hundredths}\t${copyField(r.rawValue)}\t` +
    `${r.palette}\t${r.color}\t${r.source}\t${r.requestedAt ?? NULL}\t${r.receivedAt}\t${r.occurredAt ?? NULL}\t` +
    `${r.absentAt ?? NULL}\t${r.afterGap}\t${r.late}\t${r.verified ?? NULL}\t` +
    `${r.proofHash === null ? NULL : `\\\\x${r.proofHash}`}\t\\\\x${r.historyHash}\n`
  );
}

const NULL = copyField(null);
