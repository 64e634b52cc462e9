import canonicalize from "canonicalize";
import type { Transaction } from "../db/client.ts";
import { chancesNow } from "../pass/compute/issue.ts";
import { snapshotOf } from "../pass/compute/learn.ts";
import type { HeadRow, RoundRow } from "../pass/compute/rows.ts";
import { forecastIdOf } from "../forecasts/chain/forecast-id.ts";
import { followRevisions } from "./check-scores.ts";
import { textOf } from "./check-sets.ts";
import { findStraySet } from "./verify-store.ts";
import type { Walk, WalkFailure } from "./walk-state.ts";

/** Compares the snapshot of a table, if it is of this round. */
export function checkSnapshot(walk: Walk, { seq }: RoundRow): WalkFailure | null {
  const { table, model, memories, before } = walk;
  const { snapshot } = walk.stored;
  if (snapshot === null || snapshot.seq !== seq || snapshot.model !== model.name) return null;
  walk.isSnapshotChecked = true;
  const expected = snapshotOf(model, { model: model.name, lastOrdinal: before.ordinal, lastSeq: seq }, memories);
  const differs = (name: string, want: string, have: string): WalkFailure | null =>
    want === have
      ? null
      : { kind: "snapshot", id: `${table.name} ${model.name}`, expected: `${name} ${want}`, found: `${name} ${have}` };
  return (
    differs("ordinal", String(expected.ordinal), String(snapshot.ordinal)) ??
    differs("state", Buffer.from(expected.state).toString("hex"), Buffer.from(snapshot.state).toString("hex")) ??
    differs("state_hash", expected.stateHash, snapshot.stateHash) ??
    differs("reading", expected.reading, snapshot.reading) ??
    differs("reading_hash", expected.readingHash, snapshot.readingHash) ??
    differs("refs", canonicalize(expected.refs) ?? "", canonicalize(snapshot.refs) ?? "")
  );
}

/** Compares the head of a table with the end of its rounds, forecasts and scores. */
export async function checkEnd(tx: Transaction, walk: Walk): Promise<WalkFailure | null> {
  const { table, before, stored } = walk;
  const { head } = stored;
  if (before.seq < head.lastSeq) return missingRound(walk);
  const stray = await findStraySet(tx, table.id, before.seq);
  if (stray !== null) return { kind: "table", id: table.name, expected: "sets of stored rounds only", found: stray };
  if (walk.forecastSeq < head.forecastSeq)
    return {
      kind: "forecast",
      id: forecastIdOf(table.id, walk.forecastSeq + 1n),
      expected: `a forecast with seq ${walk.forecastSeq + 1n}`,
      found: "none",
    };
  const wrongScore = followRevisions(walk.scores, null);
  if (wrongScore !== null) return wrongScore;
  const { snapshot, reading } = stored;
  if (reading !== null && (BigInt(reading.seq) < 1n || BigInt(reading.seq) > before.seq))
    return {
      kind: "published_reading",
      id: table.name,
      expected: `a seq from 1 to ${before.seq}`,
      found: `seq ${reading.seq}`,
    };
  if (snapshot !== null && !walk.isSnapshotChecked)
    return {
      kind: "snapshot",
      id: `${table.name} ${snapshot.model}`,
      expected: `one after a round of ${walk.model.name}`,
      found: `one after seq ${snapshot.seq}`,
    };
  const expected = headOf(walk);
  for (const [name, want] of Object.entries(expected)) {
    const [wanted, had] = [textOf(want), textOf(head[name as keyof typeof expected])];
    if (wanted !== had)
      return { kind: "table", id: table.name, expected: `${name} ${wanted}`, found: `${name} ${had}` };
  }
  return null;
}

/** The columns of a head that follow from the rounds. */
export function headOf({ table, facts, before, newest, model, memories, open, set, firstSet, ...walk }: Walk) {
  const isLast = set !== null && set.cutoffSeq === newest?.seq && walk.promotedSeq < set.cutoffSeq;
  return {
    lastSeq: before.seq,
    lastOrdinal: before.ordinal,
    historyHash: before.historyHash,
    palette: table.palette,
    model: model.name,
    newestSeq: newest?.seq ?? null,
    newestRoundId: newest?.roundId ?? null,
    forecastSeq: walk.forecastSeq,
    forecastHash: walk.forecastHash,
    scoreHash: walk.scores.hash,
    setSeq: set?.cutoffSeq ?? null,
    firstForecastAt: firstSet?.issuedAt ?? null,
    firstForecastOrdinal: firstSet?.cutoffOrdinal ?? null,
    openSets: [...new Set(open.map(({ cutoffSeq }) => cutoffSeq))],
    hasEnded: open.some(({ end }) => end !== null),
    nowPpm:
      newest === null
        ? []
        : chancesNow({ table: facts, model, k7: memories.k7 }, open, {
            head: { model: model.name, lastOrdinal: before.ordinal },
            issued: isLast ? set : null,
          }),
  } satisfies Partial<HeadRow>;
}

/** The failure at the next round, which is not stored. */
export function missingRound({ table: { name }, before }: Walk): WalkFailure {
  const seq = before.seq + 1n;
  return { kind: "round", id: `${name} seq ${seq}`, expected: `a round with seq ${seq}`, found: "none" };
}
