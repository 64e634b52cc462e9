import { z } from "zod";
import { InvariantViolation } from "./invariant-violation.ts";
import { reportedResults, type TrueTable, type Truth } from "./truth.ts";

/** The requests that callers send; each is a counted call. */
export const PATHS = ["games", "rounds?limit=20", "forecasts", "readings", "accuracy"] as const;
export type Path = (typeof PATHS)[number];

/** The allowed refusals, by code, each with its status. */
const ALLOWED_REFUSALS = new Map([
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

/** How many of the newest rounds of a table are compared. */
const KNOWN_ROUNDS = 400;
/** Tolerance for the sum of rounded probabilities. */
const ROUNDED_BY = 2e-6;

/**
 * Parses a refusal. Returns its code.
 * @throws InvariantViolation if it is not an allowed one, or is not in the documented format
 */
export function readRefusal(path: string, status: number, text: string): string {
  const read = failure.safeParse(parse(path, text));
  if (!read.success) throw new InvariantViolation(`${path} returned ${status} in an undocumented format: ${text}`);
  const { code } = read.data.error;
  if (ALLOWED_REFUSALS.get(code) !== status) {
    throw new InvariantViolation(`${path} returned ${status} ${code}: ${text}`);
  }
  return code;
}

/** The newest round of each table that each process has shown to a caller; it must not decrease. */
export type Shown = Map<string, number>;

/**
 * Checks a response with status 200: it is for the caller's plan, contains every table once, its rounds are as their
 * house reported them, each once and in order, and its newest round is not older than the one that the same process
 * (`by`) had shown before the request.
 * @throws InvariantViolation at the first difference
 */
export function checkResponse(
  truth: Truth,
  response: { path: Path; text: string; plan: string; by: string; shown: Shown; shownBefore: Shown },
): void {
  const { path, text, plan } = response;
  const body = parse(path, text);
  const parsed = envelope.parse(body);
  if (parsed.plan !== plan)
    throw new InvariantViolation(`${path} served a caller with the plan ${plan} as one with ${parsed.plan}`);
  if (path === "rounds?limit=20") checkRounds(truth, body, response);
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
    const known = new Map(
      table.rounds.slice(-KNOWN_ROUNDS).map((round) => [String(round.id), reportedResults(truth, table, round)]),
    );
    const oldest = table.rounds.at(-KNOWN_ROUNDS)?.id ?? 0;
    for (const { round_id: id, multiplier } of listed) {
      const results = known.get(id);
      if (results === undefined && Number(id) < oldest) continue;
      if (results?.includes(Math.round(multiplier * 100)) !== true) {
        const message = `/rounds shows ${multiplier} for round ${id} of ${house}/${game}; its house reported ${String(results)}`;
        throw new InvariantViolation(message, { house, game, round: Number(id) });
      }
    }
    const ids = listed.map(({ round_id: id }) => Number(id));
    if (ids.some((id, at) => at > 0 && id >= (ids[at - 1] ?? 0))) {
      throw new InvariantViolation(
        `/rounds shows the rounds of ${house}/${game} out of order or twice: ${ids.join(" ")}`,
      );
    }
    const key = `${by} ${house}/${game}`;
    const [newest = 0] = ids;
    const before = shownBefore.get(key) ?? 0;
    if (newest < before) {
      const message = `/rounds of ${by} shows round ${newest} of ${house}/${game} as the newest, after it had shown ${before} before`;
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
  throw new InvariantViolation(`${path} lists ${names.join(" ")}; expected each of ${truth.tables.length} tables once`);
}

function findTable({ tables }: Truth, house: string, game: string): TrueTable {
  const table = tables.find((one) => one.house === house && one.game === game);
  if (table === undefined)
    throw new InvariantViolation(`/rounds shows the table ${house}/${game}, which does not exist`);
  return table;
}

function parse(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvariantViolation(`${path} returned a body that is not JSON: ${text.slice(0, 200)}`);
  }
}
