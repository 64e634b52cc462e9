import type { Transaction } from "../../db/client.ts";
import { askedToJson, type AskedHour } from "./hour-facts-store.ts";
import { referenceSumsFromJson, referenceSumsToJson, type ReferenceSums } from "./reference-sums.ts";
import type { TouchedHour } from "../score/score-store.ts";
import { sumsFromJson, sumsToJson } from "./sums-json.ts";
import type { Sums } from "./sums.ts";

/**
 * What an hour comes to up to a cutoff: all forecasts of a feature with that cutoff or an earlier one, each of which has
 * ended, and the on-time rounds up to a seq. It follows from the facts, and nothing that comes later changes it but a
 * revised score of the hour and feature, with which it goes.
 */
export interface HourMark {
  cutoffSeq: bigint;
  roundsSeq: bigint;
  sums: Sums;
  references: ReferenceSums;
}

/** A mark that was kept; where its hour `isClosing`, it serves only as long as something of the hour waits. */
export type KeptHourMark = HourMark & { isClosing: boolean };

/** Marks serve hours that go on: one this old is not gone by any more, and goes with the next one of its table. */
const KEPT_HOURS = 3;

/** The marks of hours by feature, in the order they were asked for. One that cannot be read is as one that is missing. */
export async function readHourMarks(
  tx: Transaction,
  hours: readonly AskedHour[],
): Promise<Map<string, KeptHourMark>[]> {
  const rows = await tx<(StoredMark & { place: number; isClosing: boolean })[]>`
    select
      asked.place, m.feature, m.cutoff_seq as "cutoffSeq", m.rounds_seq as "roundsSeq", m.sums,
      m.reference_sums as "references",
      ${closesAt(tx, "m")} <= now() as "isClosing"
    from jsonb_to_recordset(${tx.json(askedToJson(hours))})
      as asked (place integer, table_id integer, model text, hour timestamptz, features text[])
    join hour_marks m
      on m.table_id = asked.table_id
      and m.model = asked.model
      and m.feature = any(asked.features)
      and m.hour = asked.hour
    where asked.hour > now() - ${KEPT_HOURS} * interval '1 hour'`;
  const marks = hours.map(() => new Map<string, KeptHourMark>());
  for (const { place, isClosing, ...row } of rows) {
    const mark = markOf(row);
    if (mark !== null) marks[place]?.set(row.feature, { ...mark, isClosing });
  }
  return marks;
}

/**
 * When an hour of a `row`, named so in the statement, may be closed for good, which takes all its facts: of some tables five
 * minutes later than of others, so that they do not all do so when the clock strikes.
 */
export function closesAt(tx: Transaction, row: string) {
  return tx`${tx(row)}.hour + interval '1 hour' + ${tx(row)}.table_id % 300 * interval '1 second'`;
}

/** A mark ready to be kept. */
export type NewHourMark = TouchedHour & HourMark;

/**
 * Keeps marks, each of another hour or feature, in place of the earlier ones; an hour that may be closed needs no more of
 * them. Needs the tables' accuracy locks.
 */
export async function saveHourMarks(tx: Transaction, marks: readonly NewHourMark[]): Promise<void> {
  if (marks.length === 0) return;
  const rows = marks.map(({ tableId, model, feature, hour, cutoffSeq, roundsSeq, sums, references }) => ({
    table_id: tableId,
    model,
    feature,
    hour,
    cutoff_seq: String(cutoffSeq),
    rounds_seq: String(roundsSeq),
    sums: sumsToJson(sums),
    reference_sums: referenceSumsToJson(references),
  }));
  const tableIds = [...new Set(marks.map(({ tableId }) => tableId))];
  await tx`
    delete from hour_marks
    where table_id = any(${tableIds}::integer[])
      and hour <= now() - ${KEPT_HOURS} * interval '1 hour'`;
  await tx`
    insert into hour_marks (table_id, model, feature, hour, cutoff_seq, rounds_seq, sums, reference_sums)
    select table_id, model, feature, hour, cutoff_seq, rounds_seq, sums, reference_sums
    from jsonb_to_recordset(${tx.json(rows)}) as x (
      table_id integer, model text, feature text, hour timestamptz, cutoff_seq bigint, rounds_seq bigint, sums jsonb,
      reference_sums jsonb
    )
    where ${closesAt(tx, "x")} > now()
    on conflict (table_id, model, feature, hour) do update
    set
      cutoff_seq = excluded.cutoff_seq,
      rounds_seq = excluded.rounds_seq,
      sums = excluded.sums,
      reference_sums = excluded.reference_sums`;
}

/** A mark as it is stored; its sums are not read yet. */
export interface StoredMark {
  feature: string;
  cutoffSeq: bigint;
  roundsSeq: bigint;
  sums: unknown;
  references: unknown;
}

/** Every mark of a table. */
export async function listHourMarks(tx: Transaction, tableId: number): Promise<(StoredMark & TouchedHour)[]> {
  return tx<(StoredMark & TouchedHour)[]>`
    select
      table_id as "tableId", model, feature,
      utc_text(hour) as hour,
      cutoff_seq as "cutoffSeq",
      rounds_seq as "roundsSeq",
      sums,
      reference_sums as "references"
    from hour_marks
    where table_id = ${tableId}
    order by model, feature, hour_marks.hour`;
}

function markOf({ cutoffSeq, roundsSeq, sums, references }: StoredMark): HourMark | null {
  try {
    return { cutoffSeq, roundsSeq, sums: sumsFromJson(sums), references: referenceSumsFromJson(references) };
  } catch {
    return null;
  }
}
