import { draw } from "../../src/demo/draw.ts";

/** One round as it was really played. */
export interface TrueRound {
  id: number;
  hundredths: number;
  /** Epoch milliseconds: from then on the house lists it. */
  endsAtMs: number;
}

/** What can be wrong with a house for a while. */
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

/** Something that is wrong with a house from one moment to another. */
export interface HouseFault {
  kind: HouseFaultKind;
  /** Its place among those of its house. */
  number: number;
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
const STEP = 5;
/** A clock that is set wrong is so by hours at most: a time that is a day ahead is not believed at all. */
const CLOCK_WRONG_MS = 6 * 3_600_000;

/** What is true of one seeded simulation: tables, rounds, and when which house is in trouble. */
export interface Truth {
  seed: number;
  /** When the troubles begin and end; nothing is wrong with a house before and after. */
  startMs: number;
  endMs: number;
  /** From then on no round ends; null while houses play. */
  frozenAtMs: number | null;
  /** When the backup was made that was restored last: the commit times of older rows are those of the restore. */
  restoredToMs: number | null;
  tables: readonly TrueTable[];
  houseFaults: Map<string, readonly HouseFault[]>;
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
  const houseFaults = new Map<string, HouseFault[]>(names.map((house) => [house, []]));
  return { seed, startMs: nowMs, endMs: nowMs, frozenAtMs: null, restoredToMs: null, tables, houseFaults };
}

/** Draws when which house is in trouble, from a moment on for so long: once everything has started. */
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

/** The kinds in turn, so that none is left out of a day that is long enough. */
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

/** Makes the rounds of a table up to a moment; those that are there stay as they are. */
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

/** All troubles of a house, in their order. */
export function faultsOfHouse({ houseFaults }: Truth, house: string): readonly HouseFault[] {
  return houseFaults.get(house) ?? [];
}

/** The troubles of a house at a moment. */
export function houseFaultsAt(truth: Truth, house: string, atMs: number): HouseFaultKind[] {
  return faultsOfHouse(truth, house)
    .filter(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs)
    .map(({ kind }) => kind);
}

/** The trouble of one kind that a house has at a moment; undefined if it has none. */
export function findHouseFault(
  truth: Truth,
  house: string,
  kind: HouseFaultKind,
  atMs: number,
): HouseFault | undefined {
  return faultsOfHouse(truth, house).find((one) => one.kind === kind && one.fromMs <= atMs && atMs < one.toMs);
}

/** Whether the tables of a house share one response: those of the last house do. */
export function isShared({ houseFaults }: Truth, house: string): boolean {
  return houseFaults.size > 1 && house === [...houseFaults.keys()].at(-1);
}

/** When a round was over, as its house has it: by a clock that may be hours wrong at the time, ahead or behind. */
export function reportedEndMs(truth: Truth, { house }: TrueTable, { endsAtMs }: TrueRound): number {
  const { seed } = truth;
  const wrong = faultsOfHouse(truth, house).find(
    ({ kind, fromMs, toMs }) => kind === "clock" && fromMs <= endsAtMs && endsAtMs < toMs,
  );
  const aheadMs = wrong === undefined ? 0 : CLOCK_WRONG_MS * (2 * draw(seed, house, "clock", wrong.number) - 1);
  return Math.round(endsAtMs + aheadMs);
}

/** Rounds that ended while their house loses some: it never lists them, not even in its history. */
export function isLost(truth: Truth, { house }: TrueTable, { endsAtMs }: TrueRound): boolean {
  return houseFaultsAt(truth, house, endsAtMs).includes("lost");
}

/** Until when a round is held back; null for one that is listed when it has ended. */
export function withheldUntil(truth: Truth, { house }: TrueTable, { id, endsAtMs }: TrueRound): number | null {
  const late = faultsOfHouse(truth, house).find(
    ({ kind, fromMs, toMs }) => kind === "late" && fromMs <= endsAtMs && endsAtMs < toMs,
  );
  return late === undefined || id % 3 !== 0 ? null : late.toMs;
}

/** The result of a round as its house tells it at a moment. */
export function listedHundredths(truth: Truth, { house }: TrueTable, round: TrueRound, atMs: number): number {
  const age = atMs - round.endsAtMs;
  const isLie = age >= LIE_FROM_MS && age <= LIE_TO_MS && houseFaultsAt(truth, house, atMs).includes("lie");
  return round.hundredths + (isLie ? LIE_HUNDREDTHS : 0);
}

/** Every result that a house ever told of a round: the first one that we hear is the one we keep. */
export function reportedResults(truth: Truth, { house }: TrueTable, round: TrueRound): number[] {
  const [from, to] = [round.endsAtMs + LIE_FROM_MS, round.endsAtMs + LIE_TO_MS];
  const lied = faultsOfHouse(truth, house).some(
    ({ kind, fromMs, toMs }) => kind === "lie" && fromMs <= to && from <= toMs,
  );
  return lied ? [round.hundredths, round.hundredths + LIE_HUNDREDTHS] : [round.hundredths];
}
