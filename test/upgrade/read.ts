import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import type { Sql } from "../../src/db/client.ts";

const PATHS = ["games", "rounds?limit=20", "forecasts", "accuracy", "usage"] as const;
const PAUSE_MS = 20;
const WAIT_MS = 30_000;

const refusal = z.object({ ok: z.literal(false), error: z.object({ code: z.string(), message: z.string() }) });
const shown = z.object({
  ok: z.literal(true),
  tables: z.array(
    z.object({
      house: z.string(),
      game: z.string(),
      rounds: z.array(z.object({ round_id: z.string(), multiplier: z.number() })),
    }),
  ),
});
const good = z.looseObject({ ok: z.literal(true) });

/** What a reader of an API has seen. */
export interface Read {
  answers: Record<200 | 304 | 503, number>;
  /** The longest time in seconds from one answer that is no refusal to the next. */
  longestSilence: number;
  /** Multipliers that /rounds showed, by table and round. */
  rounds: Map<string, number>;
  /** The highest round shown of each table. */
  newest: Map<string, number>;
}

/**
 * Reads an API until it is told to stop. Every answer must be a 200 in its form, a 304, or a 503 in the form of an error.
 * @throws Error at the first that is not
 */
export async function readOn(url: string, key: string, signal: AbortSignal): Promise<Read> {
  const read: Read = { answers: { 200: 0, 304: 0, 503: 0 }, longestSilence: 0, rounds: new Map(), newest: new Map() };
  const etags = new Map<string, string>();
  let answeredMs = Date.now();
  for (let n = 0; !signal.aborted; n++) {
    const path = PATHS[n % PATHS.length] ?? "games";
    const etag = n % 3 === 0 ? etags.get(path) : undefined;
    const response = await fetch(`${url}/api/v1/${path}`, {
      headers: { "x-api-key": key, ...(etag !== undefined && { "if-none-match": etag }) },
      signal: AbortSignal.timeout(WAIT_MS),
    });
    const text = await response.text();
    if (response.status === 503) {
      refusal.parse(JSON.parse(text));
      read.answers[503] += 1;
    } else if (response.status === 200 || (response.status === 304 && etag !== undefined)) {
      read.answers[response.status] += 1;
      read.longestSilence = Math.max(read.longestSilence, (Date.now() - answeredMs) / 1_000);
      answeredMs = Date.now();
      if (response.status === 200) {
        etags.set(path, response.headers.get("etag") ?? "");
        if (path.startsWith("rounds")) note(read, text);
        else good.parse(JSON.parse(text));
      }
    } else throw new Error(`/${path} was answered ${response.status}: ${text.slice(0, 300)}`);
    await delay(PAUSE_MS);
  }
  return read;
}

function note(read: Read, text: string): void {
  for (const { house, game, rounds } of shown.parse(JSON.parse(text)).tables) {
    const table = `${house}/${game}`;
    for (const { round_id: id, multiplier } of rounds) read.rounds.set(`${table} ${id}`, multiplier);
    const newest = Math.max(read.newest.get(table) ?? 0, ...rounds.map(({ round_id: id }) => Number(id)));
    read.newest.set(table, newest);
  }
}

/** Rounds that were shown otherwise than they are stored, or that are not stored at all; in words. */
export async function listUntrue(sql: Sql, { rounds }: Read): Promise<string[]> {
  const keys = [...rounds.keys()];
  const rows = await sql<{ name: string; hundredths: number }[]>`
    select t.house_id || '/' || t.game || ' ' || r.round_id as name, r.hundredths::float8 as hundredths
    from rounds r
    join tables t on t.id = r.table_id
    where t.house_id || '/' || t.game || ' ' || r.round_id = any(${keys}::text[])`;
  const stored = new Map(rows.map(({ name, hundredths }) => [name, hundredths]));
  return keys.filter((name) => stored.get(name) !== Math.round((rounds.get(name) ?? 0) * 100));
}
