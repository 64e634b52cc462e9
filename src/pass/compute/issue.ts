import { referencePpm, REFERENCES, repeatedPpm, type References } from "../../forecasts/accuracy/figures/references.ts";
import { forecastIdOf } from "../../forecasts/chain/forecast-id.ts";
import { NEXT_COLOR, windowFeature, WINDOW_TARGETS } from "../../forecasts/model/features.ts";
import type { State } from "../../forecasts/model/k7.ts";
import type { Model } from "../../forecasts/model/model.ts";
import { ppmOf } from "../../forecasts/model/ppm.ts";
import { nextColorOf } from "../../forecasts/model/table-model.ts";
import { hitProbabilities, windowBaselinePpm, windowsOf } from "../../forecasts/model/windows.ts";
import { forecastHash, forecastStrings } from "../../record/hashes.ts";
import type { Color } from "../../rounds/colors.ts";
import { numberOf } from "../../rounds/round.ts";
import type { ForecastSetRow, HeadRow, RoundRow } from "./rows.ts";
import type { OpenForecast, PassState, PassTime, TableFacts } from "./state.ts";
import { elapsedMs } from "./times.ts";

/** Probability now of a window whose color has already occurred. */
const HIT = -1;

/**
 * The round that a set may follow: the newest on-time one, if it was polled and the next round was not visible yet; null
 * if there is none. When a round was last absent is unknown after a first or an unreadable response, and if its item was
 * quarantined. An unread payload may contain the next round.
 */
export function findCutoff(
  rounds: readonly RoundRow[],
  { head, hasUnread }: Pick<PassState, "head" | "hasUnread">,
  { mayIssue, issuedAt }: PassTime,
): RoundRow | null {
  const newest = rounds.findLast(({ late }) => !late);
  if (newest === undefined || newest.source !== 0 || !mayIssue || hasUnread) return null;
  const { absentAt } = newest;
  return absentAt !== null && elapsedMs(absentAt, issuedAt) < head.pauseMs ? newest : null;
}

/** The knowledge that a table's forecasts are made from. */
export interface Knowledge {
  table: TableFacts;
  model: Model;
  /** After the cutoff. */
  k7: State;
  references: References;
}

/**
 * All forecasts after a round, in the order of its chain: the color of the next round, then each window whose feature
 * has none open, by color and target. `previousEnds` are those of the newest set of the same model.
 */
export function issueSet(
  { table, model, k7, references }: Knowledge,
  cutoff: RoundRow,
  { head, open, previousEnds }: { head: HeadRow; open: readonly OpenForecast[]; previousEnds: readonly bigint[] },
  issuedAt: string,
): ForecastSetRow {
  if (cutoff.ordinal === null || cutoff.absentAt === null) throw new Error("expected an on-time round to issue a set");
  const { bands } = table;
  const next = nextColorOf(model, k7);
  const likely = REFERENCES.map((name) => referencePpm(references, name));
  const features = [0];
  const horizons = [1];
  const pPpm = [...next.pPpm];
  const basePpm = [...next.basePpm];
  const perReference = likely.map((ppm): number[] => [...ppm]);
  const ends = endsOf(previousEnds, openWindows(open, head.model), bands);
  const isOpen = openFeatures(open, head.model, cutoff.ordinal);
  for (const color of bands.keys()) {
    const codes = WINDOW_TARGETS.map((_, target) => codeOf(color, target));
    const targets = codes.findLastIndex((code) => !isOpen.has(code)) + 1;
    if (targets === 0) continue;
    for (const [target, window] of windowsOf(model, k7, color, targets).entries()) {
      const code = codeOf(color, target);
      if (isOpen.has(code)) continue;
      if (window === null) {
        if ((ends[code - 1] ?? 0n) <= cutoff.ordinal) ends[code - 1] = 0n; // too rare now: none counts as not issued
        continue;
      }
      features.push(code);
      horizons.push(window.rounds);
      pPpm.push(window.pPpm);
      basePpm.push(windowBaselinePpm(model, k7, color, window.rounds));
      for (const [place, ppm] of likely.entries())
        perReference[place]?.push(repeatedPpm(ppm[color] ?? 0, window.rounds));
      ends[code - 1] = cutoff.ordinal + BigInt(window.rounds);
    }
  }
  const number = table.roundIds === "consecutive" ? numberOf(cutoff.roundId) : null;
  const set = {
    cutoffSeq: cutoff.seq,
    cutoffOrdinal: cutoff.ordinal,
    model: head.model,
    firstSeq: head.forecastSeq + 1n,
    issuedAt,
    pauseMs: head.pauseMs,
    absentAt: cutoff.absentAt,
    cutoffRoundId: cutoff.roundId,
    historyHash: cutoff.historyHash,
    targetRoundId: number === null ? null : String(number + 1n),
    features,
    horizons,
    pPpm,
    basePpm,
    referencePpm: perReference.flat(),
    ends,
    prevHash: head.forecastHash,
  };
  return { ...set, hashes: hashesOf(table, set) };
}

/** The hashes of a set's forecasts, each over the one before. @throws Error if a field cannot be hashed */
export function hashesOf(
  { tableId, name, bands }: Pick<TableFacts, "tableId" | "name" | "bands">,
  set: Omit<ForecastSetRow, "hashes">,
): string {
  let last = set.prevHash;
  let hashes = "";
  for (const [place, code] of set.features.entries()) {
    const seq = set.firstSeq + BigInt(place);
    const [from, to] = place === 0 ? [0, bands.length] : [bands.length + place - 1, bands.length + place];
    last = forecastHash(
      last,
      forecastStrings({
        seq,
        forecastId: forecastIdOf(tableId, seq),
        table: name,
        model: set.model,
        feature: featureName(code, bands),
        issuedAt: set.issuedAt,
        absentAt: set.absentAt,
        pauseMs: set.pauseMs,
        cutoffRoundId: set.cutoffRoundId,
        historyHash: set.historyHash,
        targetRoundId: set.targetRoundId,
        horizon: set.horizons[place] ?? 0,
        pPpm: set.pPpm.slice(from, to),
        basePpm: set.basePpm.slice(from, to),
      }),
    );
    hashes += last;
  }
  return hashes;
}

/** The name of a feature by its code, as the API names it. */
function featureName(code: number, bands: readonly Color[]): string {
  if (code === 0) return NEXT_COLOR;
  const [color, target] = [bands[Math.floor((code - 1) / 3)], WINDOW_TARGETS[(code - 1) % 3]];
  if (color === undefined || target === undefined)
    throw new RangeError(`expected a feature code up to ${3 * bands.length}, got ${code}; check the bands of the set`);
  return windowFeature(color.name, target);
}

function codeOf(color: number, target: number): number {
  return 1 + 3 * color + target;
}

/** Forecasts of a set whose spans have no rounds yet. */
export function openForecasts(set: ForecastSetRow, bands: readonly Color[]): OpenForecast[] {
  const { cutoffSeq, cutoffOrdinal, issuedAt, model, firstSeq, targetRoundId } = set;
  const firstNumber = targetRoundId === null ? null : BigInt(targetRoundId);
  return set.features.map((feature, place) => ({
    seq: firstSeq + BigInt(place),
    cutoffSeq,
    cutoffOrdinal,
    issuedAt,
    model,
    feature,
    endOrdinal: cutoffOrdinal + BigInt(set.horizons[place] ?? 0),
    firstNumber,
    bands,
    outcome: feature === 0 ? null : 0,
    fault: null,
    dispute: null,
    end: null,
  }));
}

/** Windows of a model that are not settled. */
function openWindows(open: readonly OpenForecast[], model: string): OpenForecast[] {
  return open.filter((forecast) => forecast.feature > 0 && forecast.model === model);
}

/**
 * Features with a window that is open at an ordinal. A window that a fault ended while settling is paused is open until
 * its last round or its score: no stored row shows that it ended.
 */
function openFeatures(open: readonly OpenForecast[], model: string, ordinal: bigint): Set<number> {
  const windows = openWindows(open, model).filter(({ endOrdinal }) => endOrdinal > ordinal);
  return new Set(windows.map(({ feature }) => feature));
}

/**
 * By window feature code, from 1: the ordinal at which its newest window ends as planned; 0 if there was none, or if it
 * ended and the color was too rare for the next one.
 */
function endsOf(previous: readonly bigint[], windows: readonly OpenForecast[], bands: readonly Color[]): bigint[] {
  const ends = Array.from({ length: 3 * bands.length }, (_, at) => previous[at] ?? 0n);
  for (const { feature, endOrdinal } of windows) {
    if (endOrdinal > (ends[feature - 1] ?? 0n)) ends[feature - 1] = endOrdinal;
  }
  return ends;
}

/**
 * The current chance of each window of the head's model that is open after an ordinal, in feature order: null if none
 * is open, -1 if it is hit. `issued` is the set of this pass: its chances are those that it states.
 */
export function chancesNow(
  { table, model, k7 }: Omit<Knowledge, "references">,
  open: readonly OpenForecast[],
  { head, issued }: { head: Pick<HeadRow, "model" | "lastOrdinal">; issued: ForecastSetRow | null },
): (number | null)[] {
  const { bands } = table;
  const now = Array.from({ length: 3 * bands.length }, (): number | null => null);
  const asked: { feature: number; left: number }[][] = bands.map(() => []);
  for (const { feature, cutoffSeq, endOrdinal, outcome, end } of openWindows(open, head.model)) {
    if (end !== null) continue;
    if (outcome === 1) now[feature - 1] = HIT;
    else if (cutoffSeq === issued?.cutoffSeq)
      now[feature - 1] = issued.pPpm[bands.length - 1 + issued.features.indexOf(feature)] ?? null;
    else
      asked[Math.floor((feature - 1) / 3)]?.push({
        feature,
        left: Number(endOrdinal - head.lastOrdinal),
      });
  }
  for (const [color, windows] of asked.entries()) {
    if (windows.length === 0) continue;
    windows.sort((a, b) => a.left - b.left);
    const chances = hitProbabilities(
      model,
      k7,
      color,
      windows.map(({ left }) => left),
    );
    for (const [at, { feature }] of windows.entries()) now[feature - 1] = ppmOf(chances[at] ?? 0);
  }
  return now;
}
