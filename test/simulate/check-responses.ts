import { z } from "zod";
import { InvariantViolation } from "./invariant-violation.ts";
import { reportedResults, type TrueTable, type Truth } from "./truth.ts";

/** What is asked for at the cost of a call. */
export const PATHS = ["games", "rounds?limit=20", "forecasts", "readings", "accuracy"] as const;
export type Path = (typeof PATHS)[number];

/** Codes that a call may be refused with, whatever happens to the servers, and the status of each. */
const FIT = new Map([
  ["rate_limited", 429],
  ["day_quota_exceeded", 429],
  ["month_quota_exceeded", 429],
  ["temporarily_unavailable", 503],
]);

const failure = z.strictObject({
  ok: z.literal(false),
  error: z.looseObject({ code: z.string(), message: z.string(), docs_url: z.string() }),
  request_id: z.string(),
});
const named = { house: z.string(), game: z.string(), market: z.literal("all") };
const envelope = z.looseObject({ ok: z.literal(true), plan: z.string() });
const rounds = z.looseObject({
  tables: z.array(
    z.looseObject({
      ...named,
      rounds: z.array(z.looseObject({ round_id: z.string(), multiplier: z.number() })),
    }),
  ),
});
const forecasts = z.looseObject({
  forecasts: z.array(
    z.looseObject({
      ...named,
      next_color: z.looseObject({ probabilities: z.record(z.string(), z.number()) }).nullable(),
    }),
  ),
});

/** How far back the rounds of a table are looked up. */
const KNOWN_ROUNDS = 400;
/** What each of several probabilities may be rounded by. */
const ROUNDED_BY = 2e-6;

/**
 * Reads a refusal; gives its code.
 * @throws Broken for one that no fault of ours excuses, and for one that is not in the form that is promised
 */
export function readRefusal(path: string, status: number, text: string): string {
  const read = failure.safeParse(parse(path, text));
  if (!read.success)
    throw new InvariantViolation(`${path} was served ${status}, in a form that is not promised: ${text}`);
  const { code } = read.data.error;
  if (FIT.get(code) !== status) throw new InvariantViolation(`${path} was served ${status} ${code}: ${text}`);
  return code;
}

/** What one caller was last shown by each process, which must not go back in time. */
export type Shown = Map<string, number>;

/**
 * Holds an answer with status 200 against what is true: it is of the caller's own plan, shows every table once, rounds as
 * their house told them, each once and in order, and none older than what the same process (`by`) had shown when it was
 * asked for.
 * @throws Broken where it is not so
 */
export function checkResponse(
  truth: Truth,
  answer: { path: Path; text: string; plan: string; by: string; shown: Shown; shownBefore: Shown },
): void {
  const { path, text, plan } = answer;
  const body = parse(path, text);
  const said = envelope.parse(body);
  if (said.plan !== plan)
    throw new InvariantViolation(`${path} served a caller with the plan ${plan} as one with ${said.plan}`);
  if (path === "rounds?limit=20") checkRounds(truth, body, answer);
  if (path === "forecasts") checkForecasts(truth, body);
}

function checkRounds(
  truth: Truth,
  body: unknown,
  { by, shown, shownBefore }: { by: string; shown: Shown; shownBefore: Shown },
): void {
  const { tables } = rounds.parse(body);
  checkTables(truth, "/rounds", tables);
  for (const { house, game, rounds: listed } of tables) {
    const table = findTable(truth, house, game);
    const told = new Map(
      table.rounds.slice(-KNOWN_ROUNDS).map((round) => [String(round.id), reportedResults(truth, table, round)]),
    );
    const oldest = table.rounds.at(-KNOWN_ROUNDS)?.id ?? 0;
    for (const { round_id: id, multiplier } of listed) {
      const results = told.get(id);
      if (results === undefined && Number(id) < oldest) continue;
      if (results?.includes(Math.round(multiplier * 100)) !== true) {
        const message = `/rounds shows ${multiplier} for round ${id} of ${house}/${game}; its house told ${String(results)}`;
        throw new InvariantViolation(message, { house, game, round: Number(id) });
      }
    }
    const ids = listed.map(({ round_id: id }) => Number(id));
    if (ids.some((id, at) => at > 0 && id >= (ids[at - 1] ?? 0))) {
      throw new InvariantViolation(
        `/rounds shows the rounds of ${house}/${game} out of order, or twice: ${ids.join(" ")}`,
      );
    }
    const key = `${by} ${house}/${game}`;
    const [newest = 0] = ids;
    const before = shownBefore.get(key) ?? 0;
    if (newest < before) {
      const message = `/rounds of ${by} shows round ${newest} of ${house}/${game} as the newest, after it had shown ${before}`;
      throw new InvariantViolation(message, { house, game, round: before });
    }
    shown.set(key, Math.max(newest, shown.get(key) ?? 0));
  }
}

function checkForecasts(truth: Truth, body: unknown): void {
  const { forecasts: listed } = forecasts.parse(body);
  checkTables(truth, "/forecasts", listed);
  for (const { house, game, next_color: next } of listed) {
    if (next === null) continue;
    const total = Object.values(next.probabilities).reduce((sum, p) => sum + p, 0);
    if (Math.abs(total - 1) > ROUNDED_BY) {
      throw new InvariantViolation(`/forecasts shows probabilities of ${house}/${game} that sum to ${total}`);
    }
  }
}

function checkTables(truth: Truth, path: string, listed: readonly { house: string; game: string }[]): void {
  const names = listed.map(({ house, game }) => `${house}/${game}`);
  if (new Set(names).size === names.length && names.length === truth.tables.length) return;
  throw new InvariantViolation(
    `${path} lists ${names.join(" ")}; there are ${truth.tables.length} tables, each to be listed once`,
  );
}

function findTable({ tables }: Truth, house: string, game: string): TrueTable {
  const table = tables.find((one) => one.house === house && one.game === game);
  if (table === undefined) throw new InvariantViolation(`/rounds shows a table ${house}/${game} that was never there`);
  return table;
}

function parse(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvariantViolation(`${path} was served with what is not JSON: ${text.slice(0, 200)}`);
  }
}
