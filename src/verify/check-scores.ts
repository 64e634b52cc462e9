import type { RoundRow, ScoreSetRow } from "../pass/compute/rows.ts";
import { outcomeText } from "../pass/compute/settle.ts";
import type { OpenForecast } from "../pass/compute/state.ts";
import { FIRST_PREVIOUS_HASH, REASONS, scoreHash, scoreStrings } from "../record/hashes.ts";
import { forecastIdOf } from "../forecasts/chain/forecast-id.ts";
import type { Wrong } from "./check-round.ts";
import type { VerifiedTable } from "./verified-table-store.ts";
import type { Dispute, StoredScoreRevision } from "./verify-store.ts";

/** A score that differs from what its forecast and rounds give. */
export type WrongScore = Wrong & { kind: "score"; id: string };

/** An on-time round with a second result or a correction. */
interface DisputedRound {
  seq: bigint;
  roundId: string;
  disputes: readonly Dispute[];
}

/** The parts of a score that the check of its revisions needs. */
interface Scored {
  cutoffSeq: bigint;
  feature: number;
  settledSeq: bigint;
  targetRequestedAt: string | null;
  rev: number;
  isScored: boolean;
}

/** The scores of a table up to some round. */
export interface ScoreWalk {
  table: VerifiedTable;
  /** The hash of the newest score in the chain. */
  hash: string;
  /** Later scores that the chain has not reached. */
  revisions: StoredScoreRevision[];
  /** Forecasts with later scores, by seq, and their first score. */
  revised: Map<bigint, Scored | null>;
  disputes: ReadonlyMap<string, readonly Dispute[]>;
  disputed: DisputedRound[];
}

/** Before the first score of a table. */
export function beginScores(
  table: VerifiedTable,
  revisions: readonly StoredScoreRevision[],
  disputes: ReadonlyMap<string, readonly Dispute[]>,
): ScoreWalk {
  const revised = new Map<bigint, Scored | null>(revisions.map(({ forecastSeq }) => [forecastSeq, null]));
  return { table, hash: FIRST_PREVIOUS_HASH, revisions: [...revisions], revised, disputes, disputed: [] };
}

/** Records an on-time round if it is disputed. */
export function recordDispute({ disputes, disputed }: ScoreWalk, { seq, roundId }: RoundRow): void {
  const own = disputes.get(roundId);
  if (own !== undefined) disputed.push({ seq, roundId, disputes: own });
}

/**
 * Checks the scores that a round settled against the open forecasts: `open` includes the round. Returns the first wrong
 * score, or the settled forecasts.
 */
export function checkScoreSet(
  walk: ScoreWalk,
  round: RoundRow,
  set: ScoreSetRow,
  open: readonly OpenForecast[],
): WrongScore | { settled: Set<bigint> } {
  const { table } = walk;
  const wrongBefore = followRevisions(walk, set.prevHash);
  if (wrongBefore !== null) return wrongBefore;
  const settled = new Set<bigint>();
  for (const [at, seq] of set.forecastSeqs.entries()) {
    const fail = (expected: string, found: string): WrongScore => ({
      kind: "score",
      id: forecastIdOf(table.id, seq),
      expected,
      found,
    });
    const forecast = open.find((one) => one.seq === seq);
    if (forecast === undefined || settled.has(seq))
      return fail("an open forecast, scored once", `a score at seq ${round.seq}`);
    const [cutoffSeq, feature] = [set.cutoffSeqs[at], set.features[at]];
    if (cutoffSeq !== forecast.cutoffSeq || feature !== forecast.feature)
      return fail(
        `cutoff ${forecast.cutoffSeq} and feature ${forecast.feature}`,
        `cutoff ${cutoffSeq} and feature ${feature}`,
      );
    const wrong = checkSettlement(walk, forecast, { round, set, at });
    if (wrong !== null) return fail(wrong.expected, wrong.found);
    const reason = set.reasons[at] ?? 0;
    const outcome = outcomeText(forecast, set.outcomes[at] ?? null);
    const strings = scoreStrings({
      forecastId: forecastIdOf(table.id, seq),
      rev: 1,
      reason: REASONS[reason] ?? "",
      outcome,
      settledSeq: round.seq,
      targetRequestedAt: set.targetRequestedAt,
      scoredAt: set.scoredAt,
    });
    walk.hash = scoreHash(walk.hash, strings);
    const found = set.hashes.slice(64 * at, 64 * at + 64);
    if (found !== walk.hash) return fail(`hash ${walk.hash}`, `hash ${found}`);
    settled.add(seq);
    const { targetRequestedAt } = set;
    const scored = { cutoffSeq, feature, settledSeq: round.seq, targetRequestedAt, rev: 1, isScored: reason === 0 };
    if (walk.revised.has(seq)) walk.revised.set(seq, scored);
    else if (reason === 0 && isDisputed(walk, forecast.cutoffSeq, round.seq))
      return fail("a later void score, because one of its rounds is disputed", "none");
  }
  return { settled };
}

function checkSettlement(
  walk: ScoreWalk,
  forecast: OpenForecast,
  { round, set, at }: { round: RoundRow; set: ScoreSetRow; at: number },
): Wrong | null {
  const [status, reason, outcome] = [set.statuses[at], set.reasons[at] ?? 0, set.outcomes[at] ?? null];
  const differs = (name: string, want: unknown, have: unknown): Wrong | null =>
    want === have ? null : { expected: `${name} ${String(want)}`, found: `${name} ${String(have)}` };
  const common =
    differs("settled_ordinal", round.ordinal, set.settledOrdinal) ??
    differs("target_requested_at", round.requestedAt, set.targetRequestedAt) ??
    differs("status", reason === 0 ? 0 : 1, status);
  if (common !== null) return common;
  if (reason >= 3) {
    const first = walk.disputed.find(
      ({ seq, disputes }) =>
        seq > forecast.cutoffSeq && seq <= round.seq && disputes.some((one) => one.reason === reason),
    );
    if (first === undefined) return { expected: "a disputed round in its span", found: "none" };
    return differs("outcome", null, outcome);
  }
  const { end, fault } = forecast;
  if (end === null)
    return { expected: "no score, because the forecast has not ended", found: `one at seq ${round.seq}` };
  const wanted = fault === null ? 0 : fault.reason;
  return (
    differs("settled_seq", end.seq, round.seq) ??
    differs("reason", REASONS[wanted] ?? wanted, REASONS[reason] ?? reason) ??
    differs("outcome", wanted === 0 ? forecast.outcome : null, outcome)
  );
}

/** Follows the chain through later scores, to the score set whose `prev_hash` is given or, with null, to the end. */
export function followRevisions(walk: ScoreWalk, until: string | null): WrongScore | null {
  const { table, revisions } = walk;
  while (revisions.length > 0 && walk.hash !== until) {
    const at = revisions.findIndex(({ prevHash }) => prevHash === walk.hash);
    const [revision] = at === -1 ? [] : revisions.splice(at, 1);
    if (revision === undefined) break;
    const wrong = checkRevision(walk, revision);
    if (wrong !== null) return { kind: "score", id: forecastIdOf(table.id, revision.forecastSeq), ...wrong };
    walk.hash = revision.hash;
  }
  const [left] = revisions;
  if (until === null && left !== undefined)
    return {
      kind: "score",
      id: forecastIdOf(table.id, left.forecastSeq),
      expected: `prev_hash ${walk.hash}`,
      found: `prev_hash ${left.prevHash}`,
    };
  if (until === null || walk.hash === until) return null;
  return { kind: "score", id: table.name, expected: `prev_hash ${walk.hash}`, found: `prev_hash ${until}` };
}

function checkRevision(walk: ScoreWalk, revision: StoredScoreRevision): Wrong | null {
  const { forecastSeq, rev, cutoffSeq, feature, settledSeq, status, reason, outcome } = revision;
  const before = walk.revised.get(forecastSeq) ?? null;
  if (before === null) return { expected: "an earlier score", found: `rev ${rev}` };
  const text = (one: Pick<Scored, "cutoffSeq" | "feature" | "settledSeq" | "rev">) =>
    `cutoff ${one.cutoffSeq}, feature ${one.feature}, settled at ${one.settledSeq}, rev ${one.rev}`;
  const [want, have] = [text({ ...before, rev: before.rev + 1 }), text({ cutoffSeq, feature, settledSeq, rev })];
  if (want !== have) return { expected: want, found: have };
  if (!before.isScored || status !== 1 || outcome !== null || (reason !== 3 && reason !== 5))
    return { expected: "a void after a score", found: `status ${status}, reason ${reason}, outcome ${outcome}` };
  const cause = walk.disputed.find(({ roundId }) => roundId === revision.causeRoundId);
  if (cause === undefined || cause.seq <= cutoffSeq || cause.seq > settledSeq)
    return { expected: "a disputed round of its span as its cause", found: revision.causeRoundId ?? "none" };
  walk.revised.set(forecastSeq, { ...before, rev, isScored: false });
  const strings = scoreStrings({
    forecastId: forecastIdOf(walk.table.id, forecastSeq),
    rev,
    reason: REASONS[reason] ?? "",
    outcome: null,
    settledSeq,
    targetRequestedAt: before.targetRequestedAt,
    scoredAt: revision.scoredAt,
  });
  const hash = scoreHash(walk.hash, strings);
  return hash === revision.hash ? null : { expected: `hash ${hash}`, found: `hash ${revision.hash}` };
}

function isDisputed({ disputed }: ScoreWalk, cutoffSeq: bigint, settledSeq: bigint): boolean {
  return disputed.some(
    ({ seq, disputes }) => seq > cutoffSeq && seq <= settledSeq && disputes.some(({ isApplied }) => isApplied),
  );
}
