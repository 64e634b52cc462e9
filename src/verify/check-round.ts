import { chainAt, chainsOf, type Chain } from "../houses/fairness/chains.ts";
import { multiplierRefusal } from "../houses/fairness/claims.ts";
import { previousHash } from "../houses/fairness/walk.ts";
import { parseMultiplier } from "../houses/reading/multiplier.ts";
import { SOURCES, type RoundRow } from "../pass/compute/rows.ts";
import { bandOf } from "../pass/compute/settle.ts";
import { FIRST_PREVIOUS_HASH, historyHash, historyStrings } from "../record/hashes.ts";
import type { VerifiedTable } from "./verified-table-store.ts";
import { sourceOf } from "./verify-store.ts";

/** 1.00, as which an instant crash is stored, in hundredths. */
const INSTANT = 100;

/** What a check expected and what it found instead. */
export interface Wrong {
  expected: string;
  found: string;
}

/** The state of a table's rounds before the checked one. */
export interface RoundBefore {
  seq: bigint;
  ordinal: bigint;
  historyHash: string;
  /** The on-time round before it; null before the first. */
  onTime: RoundRow | null;
  /** Eras with a proven round before this one: every later round with a hash must be proven. */
  proving: ReadonlySet<string>;
}

/** Before the first round of a table. */
export const FIRST_ROUND: RoundBefore = {
  seq: 0n,
  ordinal: 0n,
  historyHash: FIRST_PREVIOUS_HASH,
  onTime: null,
  proving: new Set(),
};

/** The state after a round that passed its check. */
export function roundBefore(table: VerifiedTable, round: RoundRow, before: RoundBefore): RoundBefore {
  const era = round.verified === true ? eraOf(table, round) : null;
  return {
    seq: round.seq,
    ordinal: round.ordinal ?? before.ordinal,
    historyHash: round.historyHash,
    onTime: round.late ? before.onTime : round,
    proving: era === null || before.proving.has(era.id) ? before.proving : new Set([...before.proving, era.id]),
  };
}

/** Returns what was expected and found if a round differs from what its own facts give; null if all of it is right. */
export function checkRound(table: VerifiedTable, round: RoundRow, before: RoundBefore): Wrong | null {
  if (SOURCES[round.source] === undefined) return { expected: "a known source", found: `source ${round.source}` };
  const ordinal = round.late ? null : before.ordinal + 1n;
  if (round.ordinal !== ordinal)
    return { expected: `ordinal ${ordinal ?? "none"}`, found: `ordinal ${round.ordinal ?? "none"}` };
  if (round.palette !== table.palette)
    return { expected: `palette ${table.palette}`, found: `palette ${round.palette}` };
  const color = bandOf(round.hundredths, table.bands);
  if (round.color !== color) return { expected: `color ${color}`, found: `color ${round.color}` };
  const strings = historyStrings({ ...round, source: sourceOf(round), color: table.bands[color]?.name ?? "" });
  const hash = historyHash(before.historyHash, strings);
  if (round.historyHash !== hash) {
    return { expected: `history_hash ${hash}`, found: `history_hash ${round.historyHash}` };
  }
  return checkValue(table, round) ?? checkProof(table, round, before) ?? checkOrder(table, round, before.onTime);
}

/**
 * Compares the stored multiplier with the raw value. The scale in the houses file may have been corrected since, so
 * every scale that houses use is accepted.
 */
function checkValue({ feed }: VerifiedTable, round: RoundRow): Wrong | null {
  const source = sourceOf(round);
  // a computed round was not sent by a house; an import keeps the text of its file, which only its options can parse
  if (source === "computed" || source === "import") return null;
  const readings = [feed.scale ?? 1, 1, 0.1, 0.01].map((scale) =>
    parseMultiplier(round.rawValue, { scale, instant: [] }),
  );
  if (readings.some((read) => read.ok && read.hundredths === round.hundredths)) return null;
  // a text such as "bust": the forms of an instant crash may have changed since
  if (round.hundredths === INSTANT && readings.every((read) => !read.ok)) return null;
  const [read] = readings;
  return {
    expected: read?.ok === true ? `${read.hundredths} hundredths from ${round.rawValue}` : `a multiplier as raw_value`,
    found: `${round.hundredths} hundredths from ${JSON.stringify(round.rawValue)}`,
  };
}

/**
 * Compares the stored multiplier and the link to the round before with the fairness hash, if an era declares how. With
 * opaque ids the round before may be any number of games earlier: `verify rounds` walks there.
 */
function checkProof(table: VerifiedTable, round: RoundRow, { onTime, proving }: RoundBefore): Wrong | null {
  const { proofHash, verified } = round;
  const era = eraOf(table, round);
  if (table.fairness === null || era === null || proofHash === null) return null;
  // the proof of a round from before the era was declared was not checked
  if (verified !== true)
    return proving.has(era.id) ? { expected: "verified true", found: `verified ${verified}` } : null;
  if (!/^[0-9a-f]{64}$/.test(proofHash)) return { expected: "a hash as proof", found: JSON.stringify(proofHash) };
  const eras = table.consecutive ? [era] : chainsOf(table.fairness);
  const wrong = multiplierRefusal(eras, { number: null, hash: proofHash, hundredths: round.hundredths });
  if (wrong !== null) return { expected: `${wrong.expected} from its hash`, found: wrong.found };
  if (!table.consecutive || onTime?.verified !== true || onTime.proofHash === null || round.late) return null;
  const isNext = BigInt(round.roundId) === BigInt(onTime.roundId) + 1n && eraOf(table, onTime)?.id === era.id;
  if (isNext && previousHash(proofHash, era.step) !== onTime.proofHash) {
    return { expected: `a hash that leads to ${onTime.proofHash}`, found: proofHash };
  }
  return null;
}

/** The era that proves a round; with opaque ids the newest era applies to all. */
function eraOf({ fairness, consecutive }: VerifiedTable, { roundId }: RoundRow): Chain | null {
  if (fairness === null) return null;
  const chains = chainsOf(fairness);
  return consecutive ? chainAt(chains, BigInt(roundId)) : (chains.at(-1) ?? null);
}

/**
 * With consecutive ids a polled round is late if and only if it is not above the newest number, which only a reset makes
 * equal, and `after_gap` is set if and only if one is missing.
 */
function checkOrder({ consecutive, resets }: VerifiedTable, round: RoundRow, onTime: RoundRow | null): Wrong | null {
  if (!consecutive || onTime === null) return null;
  const reset = resets.findLast(({ afterSeq }) => afterSeq >= onTime.seq && afterSeq < round.seq);
  const step = BigInt(round.roundId) - BigInt(reset?.number ?? onTime.roundId);
  const late = { poll: step <= 0n, history: true, computed: true, import: round.late }[sourceOf(round)];
  if (round.late !== late) return { expected: `late ${late}`, found: `late ${round.late}` };
  const afterGap = !round.late && step !== 1n;
  if (round.afterGap !== afterGap) return { expected: `after_gap ${afterGap}`, found: `after_gap ${round.afterGap}` };
  return null;
}
