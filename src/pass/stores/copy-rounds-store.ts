import { BinaryCopy } from "../../db/binary-copy.ts";
import { copyLines } from "../../db/copy.ts";
import type { Transaction } from "../../db/client.ts";
import type { RoundRow } from "../compute/rows.ts";

/** Stores rounds of a table by COPY, which takes about half as long as an insert when there are thousands. */
export async function copyRounds(tx: Transaction, tableId: number, rounds: readonly RoundRow[]): Promise<void> {
  const copy = await tx`
    copy rounds (
      table_id, seq, ordinal, round_id, hundredths, raw_value, palette, color, source, requested_at, received_at,
      occurred_at, absent_at, after_gap, late, verified, proof_hash, history_hash
    ) from stdin (format binary)`.writable();
  const rows = new BinaryCopy();
  for (const round of rounds) {
    rows.row(18);
    rows.int4(tableId);
    rows.int8(round.seq);
    rows.int8(round.ordinal);
    rows.text(round.roundId);
    rows.int8(round.hundredths);
    rows.text(round.rawValue);
    rows.int2(round.palette);
    rows.int2(round.color);
    rows.int2(round.source);
    rows.time(round.requestedAt);
    rows.time(round.receivedAt);
    rows.time(round.occurredAt);
    rows.time(round.absentAt);
    rows.bool(round.afterGap);
    rows.bool(round.late);
    rows.bool(round.verified);
    rows.hex(round.proofHash);
    rows.hex(round.historyHash);
  }
  await copyLines(copy, rows.finish());
}
