import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { draw } from "../../src/houses/demo/draw.ts";
import { oneOf, type Member } from "./crew.ts";
import { everTold, type TrueTable, type Truth } from "./truth.ts";

/** What a caller has seen: calls that were answered 200, and calls of which no answer came. */
export interface Caller {
  email: string;
  key: string;
  answered: number;
  /** Sent, and cut off before its answer: it may have been counted. */
  unanswered: number;
  refused: Map<string, number>;
}

const failure = z.strictObject({
  ok: z.literal(false),
  error: z.looseObject({ code: z.string(), message: z.string(), docs_url: z.string() }),
  request_id: z.string(),
});
const rounds = z.looseObject({
  ok: z.literal(true),
  tables: z.array(
    z.looseObject({
      house: z.string(),
      game: z.string(),
      rounds: z.array(z.looseObject({ round_id: z.string(), multiplier: z.number() })),
    }),
  ),
});
const forecasts = z.looseObject({
  ok: z.literal(true),
  forecasts: z.array(
    z.looseObject({ next_color: z.looseObject({ probabilities: z.record(z.string(), z.number()) }).nullable() }),
  ),
});
const anything = z.looseObject({ ok: z.literal(true) });

const PATHS = ["games", "rounds?limit=20", "forecasts", "readings", "accuracy"] as const;
/** Codes that a call may be refused with, whatever happens to the servers. */
const FIT = new Set(["rate_limited", "day_quota_exceeded", "month_quota_exceeded", "temporarily_unavailable"]);

/**
 * Calls the APIs until it is told to stop, and holds every answer against the truth.
 * @throws Error for the first answer that is neither true nor an honest refusal
 */
export async function call(
  caller: Caller,
  { truth, apis, pauseMs, signal }: { truth: Truth; apis: readonly Member[]; pauseMs: number; signal: AbortSignal },
): Promise<void> {
  const tables = new Map(truth.tables.map((table) => [`${table.house}/${table.game}`, table]));
  const etags = new Map<string, string>();
  for (let n = 0; !signal.aborted; n++) {
    await delay(pauseMs * (0.5 + draw(truth.seed, caller.email, "pause", n)));
    const api = oneOf(apis, truth.seed, caller.email, "api", n);
    const url = api.url();
    if (url === null) continue;
    const path = oneOf(PATHS, truth.seed, caller.email, "path", n);
    const etag = draw(truth.seed, caller.email, "conditional", n) < 0.3 ? etags.get(path) : undefined;
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${url}/api/v1/${path}`, {
        headers: { "x-api-key": caller.key, ...(etag !== undefined && { "if-none-match": etag }) },
        signal: AbortSignal.timeout(20_000),
      });
      text = await response.text();
    } catch (error) {
      caller.unanswered += 1;
      // a process that was killed answers nobody; one that lives must
      if (api.url() !== url) continue;
      throw new Error(`${path} was not answered by ${api.name}, which lives`, { cause: error });
    }
    if (response.status === 304) continue;
    const body = JSON.parse(text) as unknown;
    if (response.status !== 200) {
      const { error } = failure.parse(body);
      if (!FIT.has(error.code)) throw new Error(`${path} was answered ${response.status} ${error.code}: ${text}`);
      caller.refused.set(error.code, (caller.refused.get(error.code) ?? 0) + 1);
      if (error.code.endsWith("quota_exceeded")) await delay(500);
      continue;
    }
    caller.answered += 1;
    etags.set(path, response.headers.get("etag") ?? "");
    if (path.startsWith("rounds")) checkRounds(truth, tables, body);
    else if (path === "forecasts") checkForecasts(body);
    else anything.parse(body);
  }
}

function checkRounds(truth: Truth, tables: ReadonlyMap<string, TrueTable>, body: unknown): void {
  for (const { house, game, rounds: shown } of rounds.parse(body).tables) {
    const table = tables.get(`${house}/${game}`);
    if (table === undefined) throw new Error(`/rounds shows a table ${house}/${game} that was never there`);
    const told = new Map(table.rounds.slice(-400).map((round) => [String(round.id), everTold(truth, table, round)]));
    const oldest = table.rounds.at(-400)?.id ?? 0;
    for (const { round_id: id, multiplier } of shown) {
      const results = told.get(id);
      if (results === undefined && Number(id) < oldest) continue;
      if (results?.includes(Math.round(multiplier * 100)) !== true) {
        throw new Error(
          `/rounds shows ${multiplier} for round ${id} of ${house}/${game}; its house told ${String(results)}`,
        );
      }
    }
    const ids = shown.map(({ round_id: id }) => Number(id));
    if (ids.some((id, at) => at > 0 && id >= (ids[at - 1] ?? 0))) {
      throw new Error(`/rounds shows the rounds of ${house}/${game} out of order, or twice: ${ids.join(" ")}`);
    }
  }
}

function checkForecasts(body: unknown): void {
  for (const { next_color: next } of forecasts.parse(body).forecasts) {
    if (next === null) continue;
    const total = Object.values(next.probabilities).reduce((sum, p) => sum + p, 0);
    if (Math.abs(total - 1) > 2e-6) throw new Error(`/forecasts shows probabilities that sum to ${total}`);
  }
}
