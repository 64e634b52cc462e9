/*
 * Generated histories of one table: what a house plays and lists, and what a worker asks and when. A step is small and free
 * of context, so that fast-check can shrink a history; `responsesOf` plays the steps and gives the responses.
 */
import { createHash } from "node:crypto";
import fc from "fast-check";
import type { PassResponse, PolledResponse, ReadResponse } from "../../src/pass/compute/response.ts";
import type { TableFacts } from "../../src/pass/compute/state.ts";
import type { CheckedItem } from "../../src/rounds/round.ts";
import { checkedItem } from "../support/passes.ts";

export const PAUSE_MS = 5000;

/** The default is short; `PROPERTY_RUNS=20` makes each property twenty times as long. */
export const PROPERTY_RUNS = Number(process.env["PROPERTY_RUNS"] ?? "1");

export const BANDS = [
  { name: "blue", below: 200 },
  { name: "purple", below: 1000 },
  { name: "pink", below: null },
] as const;

export const OTHER_BANDS = [
  { name: "low", below: 150 },
  { name: "high", below: null },
] as const;

export function tableOf(roundIds: "consecutive" | "opaque"): TableFacts {
  return { tableId: 7, name: "alpha/crash/main", roundIds, bands: BANDS, edge: 0.03, resets: [] };
}

/** What becomes of a played round in the list: hidden ones are not listed until a step brings them. */
type Fate = "listed" | "hidden" | "broken" | "impossible" | "proven";

interface Played {
  hundredths: number;
  fate: Fate;
}

/** What a worker finds with one request, or an operator brings. */
export type Step =
  | { kind: "poll"; waitMs: number; played: readonly Played[]; listed: number; order: "rising" | "falling" | "twisted" }
  | { kind: "unchanged"; waitMs: number; played: readonly Played[] }
  | { kind: "failed"; waitMs: number; played: readonly Played[] }
  | { kind: "unreadable"; waitMs: number; played: readonly Played[] }
  | { kind: "empty"; waitMs: number; played: readonly Played[] }
  | { kind: "bring"; by: "poll" | "history" | "computed" | "import"; waitMs: number; first: number; count: number }
  | { kind: "contradict"; by: "poll" | "import"; waitMs: number; back: number };

/** A response with its database time of issue, and how it came. */
export interface Given {
  response: PassResponse;
  issuedAt: string;
  /** Its step, for messages. */
  step: number;
}

const hundredths = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 100, max: 199 }) },
  { weight: 5, arbitrary: fc.integer({ min: 200, max: 999 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1000, max: 100_000 }) },
  { weight: 1, arbitrary: fc.constant(187) },
);

const fate = fc.oneof(
  { weight: 40, arbitrary: fc.constant<Fate>("listed") },
  { weight: 1, arbitrary: fc.constantFrom<Fate>("hidden", "broken", "impossible") },
  { weight: 1, arbitrary: fc.constant<Fate>("proven") },
);

const played = fc.record({ hundredths, fate });

const wait = fc.oneof(
  { weight: 12, arbitrary: fc.integer({ min: 200, max: 2_400 }) },
  { weight: 1, arbitrary: fc.integer({ min: 4_900, max: 20_000 }) },
);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 24,
    arbitrary: fc.record({
      kind: fc.constant("poll" as const),
      waitMs: wait,
      played: fc.oneof(
        { weight: 1, arbitrary: fc.constant([]) },
        { weight: 12, arbitrary: fc.tuple(played) },
        { weight: 2, arbitrary: fc.array(played, { minLength: 2, maxLength: 5 }) },
      ),
      listed: fc.integer({ min: 0, max: 8 }),
      order: fc.oneof(
        { weight: 10, arbitrary: fc.constant("rising" as const) },
        { weight: 1, arbitrary: fc.constantFrom("falling" as const, "twisted" as const) },
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom("unchanged" as const, "failed" as const, "unreadable" as const, "empty" as const),
      waitMs: wait,
      played: fc.array(played, { maxLength: 1 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("bring" as const),
      by: fc.constantFrom("poll" as const, "history" as const, "computed" as const, "import" as const),
      waitMs: wait,
      first: fc.nat({ max: 8 }),
      count: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("contradict" as const),
      by: fc.constantFrom("poll" as const, "import" as const),
      waitMs: wait,
      back: fc.nat({ max: 6 }),
    }),
  },
);

export interface History {
  roundIds: "consecutive" | "opaque";
  steps: Step[];
}

/** Histories of up to so many steps. */
export function histories(maxLength = 90): fc.Arbitrary<History> {
  return fc.record({
    roundIds: fc.constantFrom("consecutive" as const, "opaque" as const),
    steps: fc.array(step, { minLength: 1, maxLength, size: "max" }),
  });
}

/** Where clocks begin. */
const START_MS = Date.UTC(2026, 10, 21, 4);

/** The first number that a house plays; imports may bring earlier ones. */
const FIRST_NUMBER = 1000;

/** Seven digits, as everywhere. */
export function timeAt(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "0000Z");
}

interface HouseRound {
  roundId: string;
  hundredths: number;
  fate: Fate;
  isListed: boolean;
}

/** Plays the steps of a history: the responses in their order, each with its times. */
export function responsesOf({ roundIds, steps }: History): Given[] {
  const rounds: HouseRound[] = [];
  const brought = new Set<string>();
  let earlier = FIRST_NUMBER;
  let ms = START_MS;
  const play = ({ hundredths: result, fate: its }: Played): void => {
    const number = FIRST_NUMBER + rounds.length;
    const roundId = roundIds === "consecutive" ? String(number) : `r${digest(`round ${number}`).slice(0, 8)}`;
    rounds.push({ roundId, hundredths: result, fate: its, isListed: its !== "hidden" });
  };
  return steps.map((one, at): Given => {
    ms += one.waitMs;
    const times = { requestedAt: timeAt(ms), receivedAt: timeAt(ms + 50) };
    const given = (response: PassResponse): Given => ({ response, issuedAt: timeAt(ms + 60), step: at });
    if ("played" in one) for (const round of one.played) play(round);
    if (one.kind === "poll") {
      const items = listing(rounds, one.listed + one.played.length).map(itemOf);
      return given(pollOf(times, readOf(inOrder(items, one.order), "auto")));
    }
    if (one.kind === "unchanged") return given(unchangedAt(ms));
    if (one.kind === "failed") return given({ ...pollOf(times, null), payload: null, absence: "as_before" });
    if (one.kind === "unreadable") return given(pollOf(times, { ok: false, reason: "expected JSON, got HTML" }));
    if (one.kind === "empty") return given(pollOf(times, readOf([], "newest_last")));
    if (one.kind === "contradict") {
      const shown = listing(rounds, 8);
      const other = shown.at(-1 - one.back);
      const items = shown
        .map((round) => (round === other ? { ...round, hundredths: round.hundredths + 1 } : round))
        .map(itemOf);
      if (one.by === "poll") return given(pollOf(times, readOf(items, "newest_last")));
      return given(
        addedOf("import", times, readOf(items.length === 0 || other === undefined ? [] : items, "newest_last")),
      );
    }
    const missing = rounds.filter((round) => round.fate === "hidden" && !brought.has(round.roundId));
    const chosen = missing.slice(one.first, one.first + one.count);
    for (const round of chosen) {
      brought.add(round.roundId);
      round.isListed = one.by === "poll";
    }
    if (one.by === "poll") return given(pollOf(times, readOf(listing(rounds, 12).map(itemOf), "newest_last")));
    const extra =
      chosen.length > 0
        ? chosen
        : Array.from({ length: one.count }, (): HouseRound => {
            earlier -= 1;
            const roundId =
              roundIds === "consecutive" ? String(earlier) : `e${digest(`earlier ${earlier}`).slice(0, 8)}`;
            return { roundId, hundredths: 100 + ((earlier * 37) % 400), fate: "listed", isListed: true };
          }).toReversed();
    return given(addedOf(one.by, times, readOf(extra.map(itemOf), "newest_last")));
  });
}

function listing(rounds: readonly HouseRound[], count: number): HouseRound[] {
  return count === 0 ? [] : rounds.filter(({ isListed }) => isListed).slice(-count);
}

function itemOf({ roundId, hundredths: result, fate: its }: HouseRound): CheckedItem {
  if (its === "broken")
    return {
      ok: false,
      code: "not_a_number",
      reason: "expected a number",
      roundId,
      raw: { id: roundId, multiplier: "?" },
    };
  if (its === "impossible")
    return { ok: false, code: "impossible_multiplier", reason: "below 1.00", roundId: null, raw: { multiplier: 0.5 } };
  return checkedItem({
    roundId,
    hundredths: result,
    ...(its === "proven" && { verified: true, proofHash: digest(roundId) }),
  });
}

function inOrder(items: CheckedItem[], order: "rising" | "falling" | "twisted"): CheckedItem[] {
  if (order === "falling") return items.toReversed();
  return order === "rising" ? items : [...items.slice(1), ...items.slice(0, 1)];
}

function readOf(items: readonly CheckedItem[], feedOrder: "auto" | "newest_last"): ReadResponse & { ok: true } {
  const refusedByAdapter = items.filter(({ ok }) => !ok).length;
  return { ok: true, items, feedOrder, refusedByAdapter, isPage: false, anchor: null };
}

function pollOf(times: { requestedAt: string; receivedAt: string }, read: ReadResponse | null): PolledResponse {
  const sha256 = digest(JSON.stringify([read, times.requestedAt]));
  return {
    from: "poll",
    ...times,
    absence: "proven",
    isAhead: false,
    isRepeat: false,
    part: null,
    payload: {
      path: "/rounds",
      status: 200,
      contentType: "application/json",
      bytes: 2,
      sha256,
      body: new TextEncoder().encode("{}"),
    },
    read,
  };
}

/** A 304. */
export function unchangedAt(ms: number): PolledResponse {
  const times = { requestedAt: timeAt(ms), receivedAt: timeAt(ms + 50) };
  return { ...pollOf(times, null), payload: null, isRepeat: true };
}

function addedOf(
  from: "history" | "computed" | "import",
  times: { requestedAt: string; receivedAt: string },
  read: ReadResponse,
): PassResponse {
  const manner = from === "history" ? "history" : "late";
  return {
    from,
    requestedAt: from === "history" ? times.requestedAt : null,
    receivedAt: times.receivedAt,
    manner,
    payload: null,
    read,
  };
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
