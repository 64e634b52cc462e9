/**
 * A caller who looks all the time: how long after a house published a round can it be read at the API? Looks with an
 * ETag, so that an answer without news costs next to nothing. A 503 tells nothing: what it kept back is seen later, and counts as late.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Agent, request } from "undici";
import { newestRound, publishedAtMs, type Load } from "../load-house.ts";

type Wanted = { url: string; key: string; load: Load; lookMs: number };
type Answer = { tables: { house: string; game: string; status: string; rounds: { round_id: string }[] }[] };

const { url, key, load, lookMs } = JSON.parse(process.argv[2] ?? "") as Wanted;
/** A round that was not seen for so long counts with the time that it is awaited by now. */
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
  const { statusCode, headers: told, body } = await request(url, { dispatcher, headers });
  const text = await body.text();
  const seenAt = Date.now();
  if (statusCode === 200) {
    etag = String(told["etag"]);
    for (const { house, game, rounds } of (JSON.parse(text) as Answer).tables) {
      const table = Number(house.slice(1)) * load.tablesPerHouse + Number(game.slice(1));
      const before = newest.get(table);
      const numbers = rounds.map(({ round_id: id }) => Number(id));
      newest.set(table, Math.max(before ?? 0, ...numbers));
      if (before === undefined) continue; // what was there when it began to look tells nothing
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
