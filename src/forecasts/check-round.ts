import { schemes } from "../houses/fairness/index.ts";
import { previousHash } from "../houses/fairness/bustabit.ts";
import { parseMultiplier } from "../houses/multiplier.ts";
import { colorOf } from "../rounds/colors.ts";
import { historyHash } from "../rounds/history-hash.ts";
import type { StoredRound, VerifiedTable } from "./verify-store.ts";

/** What a check expected and what it found instead. */
export interface Wrong {
  expected: string;
  found: string;
}

/** What is known of a table's rounds before the one that is checked. */
export interface RoundBefore {
  seq: bigint;
  historyHash: string;
  /** The on-time round before, null before the first. */
  onTime: StoredRound | null;
  /** A round before it was proven: from here on whatever has a hash is. */
  isProving: boolean;
}

/** Before the first round of a table. */
export const FIRST_ROUND: RoundBefore = { seq: 0n, historyHash: "0".repeat(64), onTime: null, isProving: false };

/** What the next round is checked against, once this one is found right. */
export function roundBefore(round: StoredRound, before: RoundBefore): RoundBefore {
  return {
    seq: round.seq,
    historyHash: round.historyHash,
    onTime: round.late ? before.onTime : round,
    isProving: before.isProving || round.verified === true,
  };
}

/** What was expected and found where a round is not what its own facts give; null where all of it is right. */
export function checkRound(table: VerifiedTable, round: StoredRound, before: RoundBefore): Wrong | null {
  const hash = historyHash(before.historyHash, round);
  if (round.historyHash !== hash) {
    return { expected: `history_hash ${hash}`, found: `history_hash ${round.historyHash}` };
  }
  const color = colorOf(Number(round.hundredths), table.bands);
  if (round.color !== color) return { expected: `color ${color}`, found: `color ${round.color}` };
  return checkValue(table, round) ?? checkProof(table, round, before) ?? checkOrder(table, round, before.onTime);
}

/**
 * The stored multiplier against the value as it came, read anew. The scale in the file may have been corrected since,
 * so every scale that houses use counts.
 */
function checkValue({ feed }: VerifiedTable, round: StoredRound): Wrong | null {
  if (round.source === "computed") return null; // no house sent it: its hash is the evidence
  const scales = round.source === "import" ? [1] : [feed.scale ?? 1, 1, 0.1, 0.01];
  const readings = scales.map((scale) => parseMultiplier(round.rawValue, { scale, instant: feed.instant ?? [] }));
  if (readings.some((read) => read.ok && BigInt(read.hundredths) === round.hundredths)) return null;
  const [read] = readings;
  return {
    expected: read?.ok === true ? `${read.hundredths} hundredths from ${round.rawValue}` : `a multiplier as raw_value`,
    found: `${round.hundredths} hundredths from ${JSON.stringify(round.rawValue)}`,
  };
}

/** The stored multiplier and the link to the round before against the fairness hash, where a scheme is declared. */
function checkProof({ fairness }: VerifiedTable, round: StoredRound, { onTime, isProving }: RoundBefore): Wrong | null {
  const { proofHash, verified } = round;
  if (fairness === null || proofHash === null) return null;
  // rounds from before the scheme was declared have a hash that nobody looked at
  if (verified !== true) return isProving ? { expected: "verified true", found: `verified ${verified}` } : null;
  if (!/^[0-9a-f]{64}$/.test(proofHash)) return { expected: "a hash as proof", found: JSON.stringify(proofHash) };
  const proven = schemes[fairness.scheme].hundredths(proofHash, fairness.salt);
  if (BigInt(proven) !== round.hundredths) {
    return { expected: `${proven} hundredths from its hash`, found: `${round.hundredths} hundredths` };
  }
  const isNext = onTime?.verified === true && !round.late && BigInt(round.roundId) === BigInt(onTime.roundId) + 1n;
  if (isNext && previousHash(proofHash) !== onTime.proofHash) {
    return { expected: `a hash that leads to ${onTime.proofHash}`, found: proofHash };
  }
  return null;
}

/** Where ids count up: what was polled is late if and only if it is older, and `after_gap` says whether one is missing. */
function checkOrder({ consecutive }: VerifiedTable, round: StoredRound, onTime: StoredRound | null): Wrong | null {
  if (!consecutive || onTime === null) return null;
  const step = BigInt(round.roundId) - BigInt(onTime.roundId);
  const late = { poll: step < 0n, history: true, computed: true, import: round.late }[round.source];
  if (round.late !== late) return { expected: `late ${late}`, found: `late ${round.late}` };
  const afterGap = !round.late && step !== 1n;
  if (round.afterGap !== afterGap) return { expected: `after_gap ${afterGap}`, found: `after_gap ${round.afterGap}` };
  return null;
}
