/** The published forecasts of a table, built from its head and the forecast sets that the head names. */
import { forecastIdOf } from "./chain/forecast-id.ts";
import { windowFeature, WINDOW_TARGETS } from "./model/features.ts";

/** The published columns of a stored forecast set; arrays as in table `forecast_sets`. */
export interface ReadSet {
  tableId: number;
  cutoffSeq: number;
  cutoffOrdinal: number;
  firstSeq: number;
  model: string;
  issuedAt: string;
  cutoffRoundId: string;
  targetRoundId: string | null;
  /** Names of its colors, lowest first. */
  colors: readonly string[];
  features: readonly number[];
  horizons: readonly number[];
  pPpm: readonly number[];
  basePpm: readonly number[];
  /** 64 hex digits per forecast, concatenated. */
  hashes: string;
}

/** The newest forecasts of a table in the read sets, open or not. */
export interface IssuedForecasts {
  readonly nextColor: (PublishedNextColor & { cutoffSeq: number }) | null;
  /** By feature code. */
  readonly windows: ReadonlyMap<number, IssuedWindow>;
}

/** A forecast of the next color; probabilities in ppm, by color in color order. */
export interface PublishedNextColor {
  forecast_id: string;
  issued_at: string;
  after_round_id: string;
  target_round_id: string | null;
  model: string;
  p_ppm: readonly (readonly [color: string, ppm: number])[];
  base_ppm: readonly (readonly [color: string, ppm: number])[];
  hash: string;
}

/** A window as issued, probabilities in ppm. */
export interface IssuedWindow {
  feature: string;
  color: string;
  target: number;
  forecast_id: string;
  issued_at: string;
  after_round_id: string;
  model: string;
  rounds: number;
  p_ppm: number;
  base_ppm: number;
  hash: string;
  /** The on-time round with which it ends. */
  endOrdinal: number;
}

/** A window that is open. `now.p_ppm` is the chance within the rounds left; null once it is hit. Never scored. */
export type PublishedWindow = IssuedWindow & { now: { rounds_left: number; p_ppm: number | null } };

/** The newest forecasts of a table, and the windows that are open after its newest round. */
export interface PublishedForecast {
  /** Of the newest set. */
  cutoffSeq: number;
  /** Null if that set was not read, since it is not open. */
  nextColor: PublishedNextColor | null;
  /** By color in color order, then by target. */
  windows: PublishedWindow[];
}

/** The part of a head that lists the open forecasts. */
export interface ForecastHead {
  lastOrdinal: number;
  setSeq: number | null;
  /** By window feature code, from 1: null when none is open, -1 when it is hit. */
  nowPpm: readonly (number | null)[];
}

/** No forecast issued. */
export const NOTHING_ISSUED: IssuedForecasts = { nextColor: null, windows: new Map() };

const HASH_DIGITS = 64;

/** Adds sets, given in the order of their cutoffs and newer than those before. */
export function addSets(issued: IssuedForecasts, sets: readonly ReadSet[]): IssuedForecasts {
  if (sets.length === 0) return issued;
  const windows = new Map(issued.windows);
  for (const set of sets) for (const [code, window] of windowsOf(set)) windows.set(code, window);
  const newest = sets.at(-1);
  return { nextColor: newest === undefined ? issued.nextColor : nextColorOf(newest), windows };
}

/** The published forecast; null before the first set. */
export function publishedForecast(
  { lastOrdinal, setSeq, nowPpm }: ForecastHead,
  { nextColor, windows }: IssuedForecasts,
): PublishedForecast | null {
  if (setSeq === null) return null;
  return {
    cutoffSeq: setSeq,
    nextColor: nextColor?.cutoffSeq === setSeq ? nextColor : null,
    windows: nowPpm.flatMap((ppm, at) => {
      const window = windows.get(at + 1);
      if (ppm === null || window === undefined || window.endOrdinal <= lastOrdinal) return [];
      return [{ ...window, now: { rounds_left: window.endOrdinal - lastOrdinal, p_ppm: ppm < 0 ? null : ppm } }];
    }),
  };
}

function nextColorOf(set: ReadSet): NonNullable<IssuedForecasts["nextColor"]> {
  const byColor = (ppm: readonly number[]) => set.colors.map((color, at) => [color, ppm[at] ?? 0] as const);
  return {
    cutoffSeq: set.cutoffSeq,
    ...aboutForecast(set, 0),
    target_round_id: set.targetRoundId,
    p_ppm: byColor(set.pPpm),
    base_ppm: byColor(set.basePpm),
  };
}

function windowsOf(set: ReadSet): [number, IssuedWindow][] {
  const { colors, features, horizons, pPpm, basePpm, cutoffOrdinal } = set;
  return features.flatMap((code, place): [number, IssuedWindow][] => {
    if (code === 0) return [];
    const color = colors[Math.floor((code - 1) / WINDOW_TARGETS.length)] ?? "";
    const target = WINDOW_TARGETS[(code - 1) % WINDOW_TARGETS.length] ?? 0;
    const rounds = horizons[place] ?? 0;
    const value = colors.length + place - 1; // after one value per color
    const stated = { rounds, p_ppm: pPpm[value] ?? 0, base_ppm: basePpm[value] ?? 0 };
    const about = { feature: windowFeature(color, target), color, target, ...aboutForecast(set, place) };
    return [[code, { ...about, ...stated, endOrdinal: cutoffOrdinal + rounds }]];
  });
}

function aboutForecast({ tableId, firstSeq, issuedAt, cutoffRoundId, model, hashes }: ReadSet, place: number) {
  return {
    forecast_id: forecastIdOf(tableId, BigInt(firstSeq + place)),
    issued_at: issuedAt,
    after_round_id: cutoffRoundId,
    model,
    hash: hashes.slice(HASH_DIGITS * place, HASH_DIGITS * (place + 1)),
  };
}
