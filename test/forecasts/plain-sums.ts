/**
 * Accuracy rows made score by score, in the plainest way. The program sums vectors, columns of the database and
 * outcome counts instead; the tests compare.
 */
import {
  type Reference,
  REFERENCES,
  referencePpm,
  type References,
  repeatedPpm,
} from "../../src/forecasts/accuracy/figures/references.ts";
import type { ReferenceSums } from "../../src/forecasts/accuracy/figures/reference-sums.ts";
import { type Sums, VOID_COUNT, type VoidKind } from "../../src/forecasts/accuracy/figures/sums.ts";
import { type Score, scoreNextColor, scoreWindow } from "../../src/forecasts/score/scoring.ts";

const PPM_PER_BIN = 1000;

/** Adds an issued forecast; its result is added by one of `addScore`, `addVoid` and `addPending`. */
export function addForecast(sums: Sums): void {
  sums.forecasts += 1n;
}

/** Adds the score of a forecast. */
export function addScore(sums: Sums, score: Score): void {
  sums.n += 1n;
  if (score.hit) sums.hits += 1n;
  sums.sumP += BigInt(score.pPpm);
  sums.sumPBase += BigInt(score.basePpm);
  sums.sumPq += BigInt(score.pq);
  sums.sumBrier += BigInt(score.brier);
  sums.sumBrierBase += BigInt(score.brierBase);
  sums.sumRps += BigInt(score.rps);
  sums.sumRpsBase += BigInt(score.rpsBase);
  sums.sumLl += BigInt(score.ll);
  sums.sumLlBase += BigInt(score.llBase);
  addInto(sums.sumLnE, score.lnE.map(BigInt));
  if (score.kind === "window") {
    addToHistogram(sums, 0, score.pPpm, score.hit);
    return;
  }
  addInto(sums.brierByColor, score.brierByColor.map(BigInt));
  addInto(sums.rpsByColor, score.rpsByColor.map(BigInt));
  addInto(
    sums.confusion,
    score.pPpmByColor.map((_, k) => (k === score.outcome ? 1n : 0n)),
  );
  score.pPpmByColor.forEach((p, k) => addToHistogram(sums, k, p, k === score.outcome));
}

/** Adds a forecast that can never be scored. */
export function addVoid(sums: Sums, kind: VoidKind): void {
  sums[VOID_COUNT[kind]] += 1n;
}

/** Adds a forecast whose rounds have not been received. */
export function addPending(sums: Sums): void {
  sums.pending += 1n;
}

/**
 * Adds a finished wait for the top color.
 *
 * @param massPpm its mass by bin, from `pitMass`
 */
export function addWait(sums: Sums, massPpm: readonly number[]): void {
  addInto(sums.pit, massPpm.map(BigInt));
}

/**
 * Scores all references in the place of a forecast of ours, against the baseline issued with it.
 *
 * A reference has no windows: it is scored on the chance of the color within the rounds of our window.
 *
 * @param references their memory at the forecast's cutoff
 * @param window index of the window's color, null for `next_color`
 */
export function scoreReferences(
  sums: ReferenceSums,
  references: References,
  { basePpm, horizon, outcome }: { basePpm: readonly number[]; horizon: number; outcome: number },
  window: number | null = null,
): void {
  for (const name of REFERENCES) {
    const score =
      window === null
        ? scoreNextColor(referencePpm(references, name), basePpm, outcome)
        : scoreWindow(referenceWindowPpm(references, name, window, horizon), basePpm[0] ?? 0, outcome === 1);
    addToReference(sums[name], score);
  }
}

function addToReference(row: ReferenceSums[Reference], score: Score): void {
  row.n += 1n;
  if (score.hit) row.hits += 1n;
  row.sumP += BigInt(score.pPpm);
  row.sumPq += BigInt(score.pq);
  row.sumBrier += BigInt(score.brier);
  row.sumLl += BigInt(score.ll);
}

/**
 * A reference's probability of a color within the next rounds, in ppm: 1 − (1 − q)^rounds by repeated multiplication,
 * where q is its probability for the next round. No reference looks further ahead: "due" too keeps today's q, although
 * its weight would grow with every round.
 *
 * @example
 * const references = emptyReferences(3);
 * for (const color of [0, 0, 1, 0]) learnReferences(references, color);
 * referenceWindowPpm(references, "last_20", 2, 3); // => 370262
 */
function referenceWindowPpm(references: References, name: Reference, color: number, rounds: number): number {
  return repeatedPpm(referencePpm(references, name)[color]!, rounds);
}

/** In place: making the histogram again for each score took half of a test's time. */
function addToHistogram(sums: Sums, k: number, pPpm: number, isHit: boolean): void {
  const histogram = (sums.histograms[k] ??= []) as number[];
  const bin = Math.floor(pPpm / PPM_PER_BIN);
  let at = 0;
  while (at < histogram.length && histogram[at]! < bin) at += 4;
  if (histogram[at] !== bin) histogram.splice(at, 0, bin, 0, 0, 0);
  histogram[at + 1]! += 1;
  histogram[at + 2]! += pPpm;
  histogram[at + 3]! += Number(isHit);
}

function addInto(into: bigint[], values: readonly bigint[]): void {
  values.forEach((value, k) => (into[k] = (into[k] ?? 0n) + value));
}
