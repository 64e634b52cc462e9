import { draw } from "../../src/demo/draw.ts";

/** A round as it was played. */
export interface TrueRound {
  id: number;
  hundredths: number;
  /** Epoch milliseconds; the house lists the round from then on. */
  endsAtMs: number;
}

/** The faults of houses. */
export const HOUSE_FAULTS = [
  "silent",
  "slow",
  "flapping",
  "errors",
  "garbage",
  "shuffled",
  "doubled",
  "late",
  "lost",
  "lie",
  "cut",
  "pages",
  "clock",
  "renumber",
  "ahead",
  "large",
  "damaged",
] as const;
export type HouseFaultKind = (typeof HOUSE_FAULTS)[number];

/** A fault of a house, and when it is active. */
export interface HouseFault {
  kind: HouseFaultKind;
  /** Its index among the faults of its house. */
  number: number;
  fromMs: number;
  toMs: number;
}

/** A table of the simulation. Its rounds are generated as time passes, and depend on the seed alone. */
export interface TrueTable {
  house: string;
  game: string;
  /** When its first round began. */
  sinceMs: number;
  rounds: TrueRound[];
}

/** The pause between two rounds; the rest of the interval is the duration of a round. */
export const PAUSE_MS = 900;
const LONGEST_FLIGHT_MS = 1_400;
/** How far the fault "renumber" increases the ids. */
const JUMP = 1_000_000;
/** What the fault "lie" adds to a result, in hundredths. */
const LIE_HUNDREDTHS = 37;
/** The ages of the rounds whose results the fault "lie" changes. */
const LIE_FROM_MS = 1_000;
const LIE_TO_MS = 6_000;
/** Each house starts its faults this many kinds after the previous house; coprime to their number. */
const STEP = 5;
/** At most six hours: a time that is a day ahead fails validation. */
const CLOCK_WRONG_MS = 6 * 3_600_000;

/** The truth of a seeded simulation: tables, rounds, and the faults of each house. */
export interface Truth {
  seed: number;
  /** The time between which houses have faults. */
  startMs: number;
  endMs: number;
  /** No round ends after this time; null while houses play. */
  frozenAtMs: number | null;
  /** The time of the backup that was last restored: older rows have the commit time of the restore. */
  restoredToMs: number | null;
  tables: readonly TrueTable[];
  houseFaults: Map<string, readonly HouseFault[]>;
}

/** Creates houses without faults that have played for half a minute. */
export function drawTruth(
  seed: number,
  { nowMs, houses, tablesPerHouse }: Record<"nowMs" | "houses" | "tablesPerHouse", number>,
): Truth {
  const names = Array.from({ length: houses }, (_, n) => `h${n}`);
  const tables = names.flatMap((house) =>
    Array.from({ length: tablesPerHouse }, (_, n) => ({ house, game: `g${n}`, sinceMs: nowMs - 30_000, rounds: [] })),
  );
  const houseFaults = new Map<string, HouseFault[]>(names.map((house) => [house, []]));
  return { seed, startMs: nowMs, endMs: nowMs, frozenAtMs: null, restoredToMs: null, tables, houseFaults };
}

/** Draws the faults of all houses; called when every process has started. */
export function drawHouseFaults(
  truth: Truth,
  startMs: number,
  lastsMs: number,
  among: readonly HouseFaultKind[] = HOUSE_FAULTS,
): void {
  truth.startMs = startMs;
  truth.endMs = startMs + lastsMs;
  const kinds = among.toSorted((a, b) => draw(truth.seed, a) - draw(truth.seed, b));
  for (const [n, house] of [...truth.houseFaults.keys()].entries()) {
    if (kinds.length === 0) continue;
    const own = kinds.map((_, at) => kinds[(at + n * STEP) % kinds.length] ?? "silent");
    truth.houseFaults.set(house, drawFaultsOfHouse(truth, house, own));
  }
}

/** Uses the kinds in turn, so that a day that is long enough has every kind. */
function drawFaultsOfHouse(
  { seed, startMs, endMs }: Truth,
  house: string,
  kinds: readonly HouseFaultKind[],
): HouseFault[] {
  const houseFaults: HouseFault[] = [];
  for (let at = startMs + 4_000 + 6_000 * draw(seed, house, "first"), n = 0; at < endMs; n++) {
    const kind = kinds[n % kinds.length] ?? "silent";
    const lasts = kind === "lost" ? 2_000 : kind === "renumber" ? 1 : 1_500 + 4_500 * draw(seed, house, "lasts", n);
    houseFaults.push({ kind, number: n, fromMs: at, toMs: Math.min(at + lasts, endMs) });
    at += lasts + 3_000 + 9_000 * draw(seed, house, "quiet", n);
  }
  return houseFaults;
}

/** Adds the rounds of a table that ended until `nowMs`. */
export function generateRounds(truth: Truth, table: TrueTable, nowMs: number): void {
  const { seed, frozenAtMs } = truth;
  const untilMs = Math.min(nowMs, frozenAtMs ?? nowMs);
  const { house, game, rounds } = table;
  const jumps = faultsOfHouse(truth, house).filter(({ kind }) => kind === "renumber");
  for (;;) {
    const n = rounds.length;
    const before = rounds.at(-1)?.endsAtMs ?? table.sinceMs;
    const endsAtMs = before + PAUSE_MS + LONGEST_FLIGHT_MS * draw(seed, house, game, "flight", n);
    if (endsAtMs > untilMs) return;
    const multiplier = 0.99 / (1 - draw(seed, house, game, "result", n));
    const jumped = jumps.filter(({ fromMs }) => fromMs <= endsAtMs).length * JUMP;
    rounds.push({ id: 1_000 + n + jumped, hundredths: Math.max(100, Math.floor(multiplier * 100)), endsAtMs });
  }
}

/** All faults of a house, in order. */
export function faultsOfHouse({ houseFaults }: Truth, house: string): readonly HouseFault[] {
  return houseFaults.get(house) ?? [];
}

/** The kinds of the faults that a house has at a time. */
export function houseFaultsAt(truth: Truth, house: string, atMs: number): HouseFaultKind[] {
  return faultsOfHouse(truth, house)
    .filter(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs)
    .map(({ kind }) => kind);
}

/** The fault of a kind that a house has at a time; undefined if it has none. */
export function findHouseFault(
  truth: Truth,
  house: string,
  kind: HouseFaultKind,
  atMs: number,
): HouseFault | undefined {
  return faultsOfHouse(truth, house).find((one) => one.kind === kind && one.fromMs <= atMs && atMs < one.toMs);
}

/** Whether one response contains all tables of a house, as for the last house. */
export function isShared({ houseFaults }: Truth, house: string): boolean {
  return houseFaults.size > 1 && house === [...houseFaults.keys()].at(-1);
}

/** The end of a round as its house reports it; the clock of the house may be hours wrong. */
export function reportedEndMs(truth: Truth, { house }: TrueTable, { endsAtMs }: TrueRound): number {
  const { seed } = truth;
  const wrong = faultsOfHouse(truth, house).find(
    ({ kind, fromMs, toMs }) => kind === "clock" && fromMs <= endsAtMs && endsAtMs < toMs,
  );
  const aheadMs = wrong === undefined ? 0 : CLOCK_WRONG_MS * (2 * draw(seed, house, "clock", wrong.number) - 1);
  return Math.round(endsAtMs + aheadMs);
}

/** Whether the house never lists a round, not even in its history. */
export function isLost(truth: Truth, { house }: TrueTable, { endsAtMs }: TrueRound): boolean {
  return houseFaultsAt(truth, house, endsAtMs).includes("lost");
}

/** When a round is first listed; null if it is listed as soon as it has ended. */
export function withheldUntil(truth: Truth, { house }: TrueTable, { id, endsAtMs }: TrueRound): number | null {
  const late = faultsOfHouse(truth, house).find(
    ({ kind, fromMs, toMs }) => kind === "late" && fromMs <= endsAtMs && endsAtMs < toMs,
  );
  return late === undefined || id % 3 !== 0 ? null : late.toMs;
}

/** The result of a round as its house lists it at a time. */
export function listedHundredths(truth: Truth, { house }: TrueTable, round: TrueRound, atMs: number): number {
  const age = atMs - round.endsAtMs;
  const isLie = age >= LIE_FROM_MS && age <= LIE_TO_MS && houseFaultsAt(truth, house, atMs).includes("lie");
  return round.hundredths + (isLie ? LIE_HUNDREDTHS : 0);
}

/** Every result that a house reports for a round at some time: the first one that is received is stored. */
export function reportedResults(truth: Truth, { house }: TrueTable, round: TrueRound): number[] {
  const [from, to] = [round.endsAtMs + LIE_FROM_MS, round.endsAtMs + LIE_TO_MS];
  const lied = faultsOfHouse(truth, house).some(
    ({ kind, fromMs, toMs }) => kind === "lie" && fromMs <= to && from <= toMs,
  );
  return lied ? [round.hundredths, round.hundredths + LIE_HUNDREDTHS] : [round.hundredths];
}
