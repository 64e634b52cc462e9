import { draw } from "../../src/houses/demo/draw.ts";

/** One round as it was really played. */
export interface TrueRound {
  id: number;
  hundredths: number;
  /** Epoch milliseconds: from then on the house lists it. */
  endsAtMs: number;
}

/** What can be wrong with a house for a while. */
export const TROUBLES = [
  "silent",
  "slow",
  "errors",
  "garbage",
  "shuffled",
  "doubled",
  "late",
  "lost",
  "lie",
  "cut",
  "renumber",
] as const;
export type TroubleKind = (typeof TROUBLES)[number];

/** Something that is wrong with a house from one moment to another. */
export interface Trouble {
  kind: TroubleKind;
  fromMs: number;
  toMs: number;
}

/** A table of the simulation; its rounds are made as time goes on, and depend on the seed alone. */
export interface TrueTable {
  house: string;
  game: string;
  /** When its first round began. */
  sinceMs: number;
  rounds: TrueRound[];
}

/** The shortest pause between two rounds; what is above it is time in flight. */
export const PAUSE_MS = 900;
const LONGEST_FLIGHT_MS = 1_400;
/** A house that numbers anew goes on so much higher. */
const JUMP = 1_000_000;
/** The result of a round in a lie: recognizable, and never its own. */
const LIE_HUNDREDTHS = 37;
/** How far back a lying house changes what it told, and from what age on. */
const LIE_FROM_MS = 1_000;
const LIE_TO_MS = 6_000;
/** How many kinds the next house is ahead; prime to their number. */
const STEP = 4;

/** What is true of one seeded simulation: tables, rounds, and when which house is in trouble. */
export interface Truth {
  seed: number;
  /** When the troubles begin and end; nothing is wrong with a house before and after. */
  startMs: number;
  endMs: number;
  tables: readonly TrueTable[];
  troubles: Map<string, readonly Trouble[]>;
}

/** Houses that play since half a minute, without troubles. */
export function drawTruth(
  seed: number,
  { nowMs, houses, tablesPerHouse }: Record<"nowMs" | "houses" | "tablesPerHouse", number>,
): Truth {
  const names = Array.from({ length: houses }, (_, n) => `h${n}`);
  const tables = names.flatMap((house) =>
    Array.from({ length: tablesPerHouse }, (_, n) => ({ house, game: `g${n}`, sinceMs: nowMs - 30_000, rounds: [] })),
  );
  const troubles = new Map(names.map((house) => [house, []]));
  return { seed, startMs: nowMs, endMs: nowMs, tables, troubles };
}

/** Draws when which house is in trouble, from a moment on for so long: once everything has started. */
export function drawAllTroubles(truth: Truth, startMs: number, lastsMs: number): void {
  truth.startMs = startMs;
  truth.endMs = startMs + lastsMs;
  const kinds = TROUBLES.toSorted((a, b) => draw(truth.seed, a) - draw(truth.seed, b));
  for (const [n, house] of [...truth.troubles.keys()].entries()) {
    const own = kinds.map((_, at) => kinds[(at + n * STEP) % kinds.length] ?? "silent");
    truth.troubles.set(house, drawTroubles(truth, house, own));
  }
}

/** The kinds in turn, so that none is left out of a day that is long enough. */
function drawTroubles({ seed, startMs, endMs }: Truth, house: string, kinds: readonly TroubleKind[]): Trouble[] {
  const troubles: Trouble[] = [];
  for (let at = startMs + 4_000 + 6_000 * draw(seed, house, "first"), n = 0; at < endMs; n++) {
    const kind = kinds[n % kinds.length] ?? "silent";
    const lasts = kind === "lost" ? 2_000 : kind === "renumber" ? 1 : 1_500 + 4_500 * draw(seed, house, "lasts", n);
    troubles.push({ kind, fromMs: at, toMs: Math.min(at + lasts, endMs) });
    at += lasts + 3_000 + 9_000 * draw(seed, house, "quiet", n);
  }
  return troubles;
}

/** Makes the rounds of a table up to a moment; those that are there stay as they are. */
export function playUntil(truth: Truth, table: TrueTable, nowMs: number): void {
  const { seed } = truth;
  const { house, game, rounds } = table;
  const jumps = (truth.troubles.get(house) ?? []).filter(({ kind }) => kind === "renumber");
  for (;;) {
    const n = rounds.length;
    const before = rounds.at(-1)?.endsAtMs ?? table.sinceMs;
    const endsAtMs = before + PAUSE_MS + LONGEST_FLIGHT_MS * draw(seed, house, game, "flight", n);
    if (endsAtMs > nowMs) return;
    const multiplier = 0.99 / (1 - draw(seed, house, game, "result", n));
    const jumped = jumps.filter(({ fromMs }) => fromMs <= endsAtMs).length * JUMP;
    rounds.push({ id: 1_000 + n + jumped, hundredths: Math.max(100, Math.floor(multiplier * 100)), endsAtMs });
  }
}

/** The troubles of a house at a moment. */
export function troublesAt({ troubles }: Truth, house: string, atMs: number): TroubleKind[] {
  return (troubles.get(house) ?? [])
    .filter(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs)
    .map(({ kind }) => kind);
}

/** Rounds that ended while their house loses some: it never lists them, not even in its history. */
export function isLost(truth: Truth, { house }: TrueTable, { endsAtMs }: TrueRound): boolean {
  return troublesAt(truth, house, endsAtMs).includes("lost");
}

/** Until when a round is held back; null for one that is listed when it has ended. */
export function heldUntil({ troubles }: Truth, { house }: TrueTable, { id, endsAtMs }: TrueRound): number | null {
  const late = (troubles.get(house) ?? []).find(
    ({ kind, fromMs, toMs }) => kind === "late" && fromMs <= endsAtMs && endsAtMs < toMs,
  );
  return late === undefined || id % 3 !== 0 ? null : late.toMs;
}

/** The result of a round as its house tells it at a moment. */
export function toldHundredths(truth: Truth, { house }: TrueTable, round: TrueRound, atMs: number): number {
  const age = atMs - round.endsAtMs;
  const isLie = age >= LIE_FROM_MS && age <= LIE_TO_MS && troublesAt(truth, house, atMs).includes("lie");
  return round.hundredths + (isLie ? LIE_HUNDREDTHS : 0);
}

/** Every result that a house ever told of a round: the first one that we hear is the one we keep. */
export function everTold({ troubles }: Truth, { house }: TrueTable, round: TrueRound): number[] {
  const [from, to] = [round.endsAtMs + LIE_FROM_MS, round.endsAtMs + LIE_TO_MS];
  const lied = (troubles.get(house) ?? []).some(
    ({ kind, fromMs, toMs }) => kind === "lie" && fromMs <= to && from <= toMs,
  );
  return lied ? [round.hundredths, round.hundredths + LIE_HUNDREDTHS] : [round.hundredths];
}
