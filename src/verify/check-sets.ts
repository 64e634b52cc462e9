import type { ForecastSetRow, RoundRow } from "../pass/compute/rows.ts";
import { issueSet, openForecasts } from "../pass/compute/issue.ts";
import { elapsedMs } from "../pass/compute/times.ts";
import { forecastIdOf } from "../forecasts/chain/forecast-id.ts";
import type { Wrong } from "./check-round.ts";
import type { Walk, WalkFailure } from "./walk-state.ts";

const HASH = 64;
/** The longest pause that a table may declare, in milliseconds. */
const LONGEST_PAUSE_MS = 3_600_000;

/** Computes a forecast set again and compares it. */
export function checkSet(walk: Walk, round: RoundRow, set: ForecastSetRow): WalkFailure | null {
  const { table, forecastSeq } = walk;
  const fail = (expected: string, found: string, place = 0): WalkFailure => ({
    kind: "forecast",
    id: forecastIdOf(table.id, forecastSeq + 1n + BigInt(place)),
    expected,
    found,
  });
  if (round.late || round.source !== 0 || round.absentAt === null)
    return fail("a cutoff that was polled on time", `round ${round.roundId}, late ${round.late}`);
  const sinceAbsent = elapsedMs(round.absentAt, set.issuedAt);
  if (set.pauseMs > LONGEST_PAUSE_MS || sinceAbsent < 0 || sinceAbsent >= set.pauseMs)
    return fail(`an issue within ${set.pauseMs} ms after the cutoff was absent`, `${sinceAbsent} ms`);
  // not compared with the set before: the clock of the database may have been set back since
  if (set.issuedAt < round.receivedAt)
    return fail(`issued at ${round.receivedAt} or later`, `issued at ${set.issuedAt}`);
  walk.lateSettled = walk.lateSettled.filter(({ scoredAt }) => scoredAt > set.issuedAt);
  let wrong = difference(issueAgain(walk, round, set), set);
  if (wrong !== null && walk.lateSettled.length > 0) {
    // perhaps they were scored before this set, by a clock that was set back since: then they are not open
    walk.lateSettled = [];
    if (difference(issueAgain(walk, round, set), set) === null) wrong = null;
  }
  if (wrong !== null) return fail(wrong.expected, wrong.found, wrong.place);
  walk.set = set;
  walk.firstSet ??= set;
  walk.open = [...walk.open, ...openForecasts(set, table.bands)];
  walk.forecastSeq += BigInt(set.features.length);
  walk.forecastHash = set.hashes.slice(-HASH);
  return null;
}

/** The set that the rounds give, at the time of the stored one. */
function issueAgain(walk: Walk, round: RoundRow, { issuedAt, pauseMs }: ForecastSetRow): ForecastSetRow {
  const { table, facts, model, memories, forecastSeq, forecastHash } = walk;
  return issueSet(
    { table: facts, model, k7: memories.k7, references: memories.references },
    round,
    {
      head: { ...walk.stored.head, model: model.name, forecastSeq, forecastHash, pauseMs },
      open: [...walk.open, ...walk.lateSettled.map(({ forecast }) => forecast)],
      previousEnds: walk.set?.model === model.name ? walk.set.ends : table.bands.flatMap(() => [0n, 0n, 0n]),
    },
    issuedAt,
  );
}

/** The first part in which two sets differ, and the forecast it belongs to. */
function difference(expected: ForecastSetRow, found: ForecastSetRow): (Wrong & { place: number }) | null {
  for (const name of Object.keys(expected) as (keyof ForecastSetRow)[]) {
    if (name === "hashes") continue;
    if (isSame(expected[name], found[name])) continue;
    return { expected: `${name} ${textOf(expected[name])}`, found: `${name} ${textOf(found[name])}`, place: 0 };
  }
  if (expected.hashes === found.hashes) return null;
  for (let place = 0; place < expected.features.length; place++) {
    const [want, have] = [expected, found].map(({ hashes }) => hashes.slice(HASH * place, HASH * (place + 1)));
    if (want !== have) return { expected: `hash ${want}`, found: `hash ${have}`, place };
  }
  return { expected: `${expected.features.length} hashes`, found: `${found.hashes.length / HASH}`, place: 0 };
}

/** Whether two columns of a set are equal: numbers, texts or arrays of them. */
function isSame(one: unknown, other: unknown): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return one === other;
  return one.length === other.length && one.every((value, at) => value === other[at]);
}

/** A number, a text or an array of them as it is shown in a failure. */
export function textOf(value: unknown): string {
  return Array.isArray(value) ? value.join("|") : String(value);
}
