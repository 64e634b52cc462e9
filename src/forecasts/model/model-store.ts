import type { Queryable, Transaction } from "../../db/client.ts";
import type { LearnedRound } from "./table-model.ts";

/** A round to learn, with its table and its place. */
export interface SeqRound extends LearnedRound {
  tableId: number;
  seq: bigint;
}

/** A part of a table's history: after one seq, up to and with another. */
export interface SeqSpan {
  tableId: number;
  afterSeq: bigint;
  upToSeq: bigint;
}

/**
 * The first `limit` on-time rounds of each span, by table and seq. Late rounds are left out: a model never learns them.
 * A span that gives fewer than `limit` is given whole.
 */
export async function listRoundsToLearn(sql: Queryable, spans: readonly SeqSpan[], limit: number): Promise<SeqRound[]> {
  if (spans.length === 0) return [];
  const rows = spans.map(({ tableId, afterSeq, upToSeq }) => ({
    table_id: tableId,
    after_seq: String(afterSeq),
    up_to_seq: String(upToSeq),
  }));
  return sql<SeqRound[]>`
    select
      r.table_id as "tableId", r.seq, r.hundredths::float8 as hundredths, r.color, r.after_gap as "afterGap"
    from jsonb_to_recordset(${sql.json(rows)}) as span (table_id integer, after_seq bigint, up_to_seq bigint)
    cross join lateral (
      select *
      from rounds
      where table_id = span.table_id
        and seq > span.after_seq
        and seq <= span.up_to_seq
        and not late
      order by seq
      limit ${limit}
    ) r
    order by r.table_id, r.seq`;
}

/** A table's live state, and the seq up to which it has learned. */
export interface LearnedState {
  tableId: number;
  model: string;
  learnedSeq: bigint;
  state: Buffer;
  stateHash: string;
}

/** Keeps the live states of tables; needs their locks. */
export async function saveStates(tx: Transaction, states: readonly LearnedState[]): Promise<void> {
  if (states.length === 0) return;
  const rows = states.map(({ tableId, model, learnedSeq, state, stateHash }) => ({
    table_id: tableId,
    model,
    learned_seq: String(learnedSeq),
    state: state.toString("hex"),
    state_hash: stateHash,
  }));
  await tx`
    insert into model_states (table_id, model, learned_seq, state, state_hash)
    select table_id, model, learned_seq, decode(state, 'hex'), state_hash
    from jsonb_to_recordset(${tx.json(rows)})
      as x (table_id integer, model text, learned_seq bigint, state text, state_hash text)
    order by table_id
    on conflict (table_id, model) do update
    set
      learned_seq = excluded.learned_seq,
      state = excluded.state,
      state_hash = excluded.state_hash,
      updated_at = clock_timestamp()`;
}
