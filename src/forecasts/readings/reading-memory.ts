/**
 * The memory behind a table's reading and audit: a pure function of its rounds in the order of receipt, a fixed amount of
 * work per round, only + − × ÷, so that a replay in steps of any size gives the same text, byte by byte.
 *
 * Late rounds count for proofs and missing rounds only: a reading must use only what was known at the time.
 */
import { createHash } from "node:crypto";
import { emptyDependence, forgetPast, watchDependence, type Dependence } from "./dependence.ts";
import { emptyDrift, watchDrift, type Drift } from "./drift.ts";
import { emptyEdgeTest, testEdge, type EdgeTest } from "./edge-test.ts";
import {
  auditRow,
  emptyTally,
  tallyRound,
  type AuditedRound,
  type AuditRow,
  type NumberReset,
  type Tally,
} from "./house-audit.ts";
import type { Model } from "../model/model.ts";
import { emptyVolatility, watchVolatility, type Volatility } from "./volatility.ts";

/** Memory of a table for its reading and its audit. */
export type ReadingMemory = {
  readonly model: Model;
  /** Ids are consecutive, so that missing rounds can be counted. */
  readonly consecutive: boolean;
  /** The newest 500 colors of on-time rounds, oldest first. */
  colors: Uint8Array;
  /** Rounds in a row of the newest color; null while unknown. */
  streak: number | null;
  readonly dependence: Dependence;
  readonly drift: Drift;
  readonly volatility: Volatility;
  readonly edgeTest: EdgeTest;
  readonly tally: Tally;
};

/** The part of a round that a reading learns, late rounds included. */
export interface ReadRound extends AuditedRound {
  hundredths: number;
}

const COLORS_KEPT = 500;

/** Before the first round. */
export function emptyReading(model: Model, { consecutive }: { consecutive: boolean }): ReadingMemory {
  return {
    model,
    consecutive,
    colors: new Uint8Array(),
    streak: null,
    dependence: emptyDependence(model),
    drift: emptyDrift(model.colors),
    volatility: emptyVolatility(),
    edgeTest: emptyEdgeTest(),
    tally: emptyTally(),
  };
}

/** The audit row of the hour that the newest round was received in; null before the first. */
export function auditOf({ tally, edgeTest, model, consecutive }: ReadingMemory): AuditRow | null {
  return auditRow(tally, edgeTest, { edge: model.edge, consecutive });
}

/** Learns one round, in seq order. */
export function readRound(memory: ReadingMemory, round: ReadRound, resets: readonly NumberReset[]): void {
  tallyRound(memory.tally, round, resets);
  if (round.late) return;
  const { model, colors, dependence } = memory;
  if (round.afterGap) forgetPast(dependence);
  if (round.afterGap) memory.streak = null;
  const { hundredths } = round;
  const color = bandOf(model, hundredths);
  const before = round.afterGap ? undefined : colors.at(-1);
  if (before !== undefined && before !== color) memory.streak = 1;
  else if (memory.streak !== null) memory.streak += 1;
  memory.colors = addNewest(colors, color);
  watchDependence(dependence, model, color);
  watchDrift(memory.drift, model, { color, hundredths });
  watchVolatility(memory.volatility, hundredths);
  if (model.edge !== null) testEdge(memory.edgeTest, model.edge, hundredths);
}

/** Adds a color, in place once there are as many as are kept: another array per round takes 0.5 µs (10 by a spread). */
function addNewest(colors: Uint8Array, color: number): Uint8Array {
  if (colors.length < COLORS_KEPT) {
    const longer = new Uint8Array(colors.length + 1);
    longer.set(colors);
    longer[colors.length] = color;
    return longer;
  }
  colors.copyWithin(0, 1);
  colors[COLORS_KEPT - 1] = color;
  return colors;
}

/** A deep copy. */
export function copyReading(memory: ReadingMemory): ReadingMemory {
  const { dependence, drift, volatility, edgeTest, tally } = memory;
  const [longRun, markov, hazard] = dependence.weights;
  return {
    ...memory,
    colors: memory.colors.slice(),
    dependence: {
      ...dependence,
      counts: [...dependence.counts],
      transitions: [...dependence.transitions],
      trials: [...dependence.trials],
      hits: [...dependence.hits],
      weights: [longRun, markov, hazard],
      likelihood: { ...dependence.likelihood },
    },
    drift: { ...drift, counts: [...drift.counts], newerCounts: [...drift.newerCounts] },
    volatility: {
      ...volatility,
      newest: [...volatility.newest],
      means: [...volatility.means],
      spreads: [...volatility.spreads],
    },
    edgeTest: { ...edgeTest, wealth: { ...edgeTest.wealth }, most: { ...edgeTest.most } },
    tally: { ...tally },
  };
}

/** Index of the band a round falls in, lowest first. */
function bandOf({ thresholds }: Model, hundredths: number): number {
  let band = 0;
  for (const threshold of thresholds) if (hundredths >= threshold) band += 1;
  return band;
}

/** Hash of a memory's text, hex: equal memories have equal texts. */
export function readingHash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
