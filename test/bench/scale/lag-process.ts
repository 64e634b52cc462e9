/**
 * A caller that polls the API and measures the time from the publication of a round by its house until the API shows it.
 * It sends an ETag, so that an unchanged response costs little. A 503 is ignored: its rounds are seen later and have a
 * larger lag.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Agent, request } from "undici";
import { newestRound, publishedAtMs, type Load } from "../load-house.ts";

type Wanted = { url: string; key: string; load: Load; lookMs: number };
type Body = { tables: { house: string; game: string; status: string; rounds: { round_id: string }[] }[] };

const { url, key, load, lookMs } = JSON.parse(process.argv[2] ?? "") as Wanted;
/** A round that is not visible after this time counts with its current age. */
const OVERDUE_MS = 5_000;

const dispatcher = new Agent({ connections: 1, pipelining: 1 });
const newest = new Map<number, number>();
let lagsMs: number[] = [];
process.on("message", () => {
  process.send?.([...lagsMs, ...overdueMs(Date.now())]);
  lagsMs = [];
});
process.on("disconnect", () => process.exit());

let etag = "";
for (let isFirst = true; ; isFirst = false) {
  const headers = { "x-api-key": key, "if-none-match": etag };
  const { statusCode, headers: responseHeaders, body } = await request(url, { dispatcher, headers });
  const text = await body.text();
  const seenAt = Date.now();
  if (statusCode === 200) {
    etag = String(responseHeaders["etag"]);
    for (const { house, game, rounds } of (JSON.parse(text) as Body).tables) {
      const table = Number(house.slice(1)) * load.tablesPerHouse + Number(game.slice(1));
      const before = newest.get(table);
      const numbers = rounds.map(({ round_id: id }) => Number(id));
      newest.set(table, Math.max(before ?? 0, ...numbers));
      if (before === undefined) continue; // rounds of the first response have no known lag
      for (const number of numbers) if (number > before) lagsMs.push(seenAt - publishedAtMs(load, table, number));
    }
  } else if (statusCode !== 304 && statusCode !== 503)
    throw new Error(`expected 200, 304 or 503, got ${statusCode}: ${text.slice(0, 200)}`);
  if (isFirst) process.send?.("ready");
  await delay(lookMs);
}

function overdueMs(nowMs: number): number[] {
  return [...newest].flatMap(([table, seen]) => {
    const ages: number[] = [];
    for (let number = seen + 1; number <= newestRound(load, table, nowMs); number++) {
      ages.push(nowMs - publishedAtMs(load, table, number));
    }
    return ages.filter((ms) => ms > OVERDUE_MS);
  });
}
