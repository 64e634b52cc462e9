import type { Transaction } from "../db/client.ts";
import { copyField, copyLines } from "../db/copy.ts";
import type { RoundSource, TakenRound } from "./round.ts";

/** Rounds to store, and where they came from; times are texts of the database. */
export interface NewRounds {
  tableId: number;
  source: RoundSource;
  payloadId: bigint | null;
  requestedAt: string | null;
  /** Null: now. */
  receivedAt: string | null;
  rounds: readonly TakenRound[];
}

/** From this many rounds on a COPY costs less than an insert, whose rows come as JSON; below, its own start costs more. */
const COPY_FROM = 100;

/**
 * Inserts rounds with the places they were given, under the lock of their tables. A place given twice is a fault of
 * ours and throws. The statement for a few rounds and the COPY for many store the same.
 */
export async function insertRounds(sql: Transaction, groups: readonly NewRounds[]): Promise<void> {
  const filled = groups.filter(({ rounds }) => rounds.length > 0);
  const count = filled.reduce((sum, { rounds }) => sum + rounds.length, 0);
  if (count >= COPY_FROM) await copyRounds(sql, filled);
  else if (count > 0) await insertFew(sql, filled);
}

async function copyRounds(sql: Transaction, groups: readonly NewRounds[]): Promise<void> {
  let now = "";
  if (groups.some(({ receivedAt }) => receivedAt === null)) {
    const [clock] = await sql<{ now: string }[]>`select clock_timestamp()::text as now`;
    now = clock?.now ?? "";
  }
  const lines: string[] = [];
  for (const { tableId, source, payloadId, requestedAt, receivedAt, rounds } of groups) {
    const payload = payloadId === null ? "\\N" : String(payloadId);
    const times = `${requestedAt ?? "\\N"}\t${receivedAt ?? now}`;
    for (const round of rounds) {
      const { seq, hundredths, occurredAt, absentAt, afterGap, late, proofHash, verified, historyHash } = round;
      const [id, raw, color] = [copyField(round.roundId), copyField(round.rawValue), copyField(round.color)];
      lines.push(
        `${tableId}\t${seq}\t${id}\t${hundredths}\t${raw}\t${color}\t${source}\t${times}\t${occurredAt ?? "\\N"}\t${absentAt ?? "\\N"}\t${afterGap}\t${late}\t${proofHash ?? "\\N"}\t${verified ?? "\\N"}\t${payload}\t${historyHash}\n`,
      );
    }
  }
  const copy = sql`
    copy rounds (
      table_id, seq, round_id, hundredths, raw_value, color, source, requested_at, received_at, occurred_at, absent_at,
      after_gap, late, proof_hash, verified, payload_id, history_hash
    ) from stdin`;
  await copyLines(await copy.writable(), lines.join(""));
}

async function insertFew(sql: Transaction, groups: readonly NewRounds[]): Promise<void> {
  const rows = groups.flatMap(({ rounds, ...from }) =>
    rounds.map((round) => ({
      table_id: from.tableId,
      seq: String(round.seq),
      round_id: round.roundId,
      hundredths: round.hundredths,
      raw_value: round.rawValue,
      color: round.color,
      source: from.source,
      requested_at: from.requestedAt,
      received_at: from.receivedAt,
      occurred_at: round.occurredAt,
      absent_at: round.absentAt,
      after_gap: round.afterGap,
      late: round.late,
      proof_hash: round.proofHash,
      verified: round.verified,
      payload_id: from.payloadId === null ? null : String(from.payloadId),
      history_hash: round.historyHash,
    })),
  );
  await sql`
    insert into rounds (
      table_id, seq, round_id, hundredths, raw_value, color, source, requested_at, received_at, occurred_at,
      absent_at, after_gap, late, proof_hash, verified, payload_id, history_hash
    )
    select
      table_id, seq, round_id, hundredths, raw_value, color, source, requested_at,
      coalesce(received_at, clock_timestamp()), occurred_at, absent_at, after_gap, late, proof_hash, verified,
      payload_id, history_hash
    from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as r (
      table_id integer, seq bigint, round_id text, hundredths bigint, raw_value text, color text, source text,
      requested_at timestamptz, received_at timestamptz, occurred_at timestamptz, absent_at timestamptz,
      after_gap boolean, late boolean, proof_hash text, verified boolean, payload_id bigint, history_hash text
    )
    order by table_id, seq`;
}
