import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../../src/db/client.ts";

/** How often it is looked; recovery is known to this. */
const CHECK_EVERY_MS = 50;
/** Houses are polled five times a second: a longer silence than this between two polls is not yet polling again … */
const PACE_MS = 2_000;
/** … but on a machine that is busy with others, where so many times the longest silence before the fault counts. */
const BUSY = 3;
/** So many polls at that pace make it polling again, and not the end of one that was under way. */
const POLLS = 3;

/** A watch over good polls, by database time, which is that of this machine. */
export interface PollWatch {
  /** Learns from what was polled since a moment what silence is usual on this machine now; gives the longest in seconds. */
  learnPace(sinceMs: number): number;
  /**
   * Seconds from a moment on until each of the houses was polled at its pace again: the first of three good polls without
   * a longer silence between them. Null where that is not so within the patience.
   */
  waitForRecovery(fromMs: number, timeoutMs: number, houses?: readonly string[]): Promise<number | null>;
  /**
   * Seconds from `fromMs` to the end of the last silence of any house that was longer than its pace, once polls were watched
   * for `watchMs` and none is silent; 0 if there was no such silence, null if a house is still silent after `patienceMs`.
   * `perHouse` names the end of each house's last silence.
   */
  settled(
    fromMs: number,
    times: { watchMs: number; timeoutMs: number },
    houses?: readonly string[],
  ): Promise<{ seconds: number | null; perHouse: string }>;
  /** The longest silence between good polls of any of the houses from one moment to another, in seconds. */
  longestSilence(fromMs: number, toMs: number, houses: readonly string[]): number;
  close(): Promise<void>;
}

/** Begins to watch. `sql` comes back by itself after an outage; what happened meanwhile is not seen, and was no polling. */
export function watchPolls(sql: Sql, houses: readonly string[]): PollWatch {
  const polls = new Map<string, number[]>(houses.map((house) => [house, []]));
  let isClosed = false;
  let paceMs = PACE_MS;
  const watching = (async () => {
    while (!isClosed) {
      for (const { house, at } of await newestPolls(sql)) {
        const known = polls.get(house);
        if (known !== undefined && at !== null && at > (known.at(-1) ?? 0)) known.push(at);
      }
      await delay(CHECK_EVERY_MS);
    }
  })();

  function firstOfPace(house: string, fromMs: number): number | null {
    const after = (polls.get(house) ?? []).filter((at) => at > fromMs);
    for (let n = 0; n + POLLS <= after.length; n++) {
      const [first, ...rest] = after.slice(n, n + POLLS);
      if (first === undefined) break;
      if (rest.every((at, place) => at - (after[n + place] ?? 0) < paceMs)) return first;
    }
    return null;
  }

  /** When the last silence longer than the pace ended; `fromMs` if there was none, null if it lasts at `now`. */
  function lastSilenceEnd(house: string, fromMs: number, now: number): number | null {
    let [before, end] = [fromMs, fromMs];
    for (const at of (polls.get(house) ?? []).filter((poll) => poll > fromMs)) {
      if (at - before > paceMs) end = at;
      before = at;
    }
    return now - before > paceMs ? null : end;
  }

  function longestSilence(fromMs: number, toMs: number, of: readonly string[]): number {
    const silences = of.flatMap((house) => {
      const within = (polls.get(house) ?? []).filter((at) => at > fromMs && at < toMs);
      return [...within, toMs].map((at, n) => at - (within[n - 1] ?? fromMs));
    });
    return Math.max(0, ...silences) / 1_000;
  }

  return {
    learnPace(sinceMs) {
      const usual = longestSilence(sinceMs, Date.now(), houses);
      paceMs = Math.max(PACE_MS, BUSY * usual * 1_000);
      return usual;
    },
    async waitForRecovery(fromMs, timeoutMs, of = houses) {
      while (Date.now() < fromMs + timeoutMs) {
        const firsts = of.map((house) => firstOfPace(house, fromMs));
        if (firsts.every((at) => at !== null)) return Math.max(0, ...firsts.map((at) => (at - fromMs) / 1_000));
        await delay(CHECK_EVERY_MS);
      }
      return null;
    },
    async settled(fromMs, { watchMs, timeoutMs }, of = houses) {
      for (;;) {
        const now = Date.now();
        const ends = of.map((house) => lastSilenceEnd(house, fromMs, now));
        const isOver = now >= fromMs + watchMs && ends.every((at) => at !== null);
        if (isOver || now >= fromMs + timeoutMs) {
          const seconds = ends.map((at) => (at === null ? null : (at - fromMs) / 1_000));
          const perHouse = of.map((house, n) => `${house} ${seconds[n]?.toFixed(1) ?? "still silent"}`).join(", ");
          return { seconds: seconds.includes(null) ? null : Math.max(0, ...seconds.map(Number)), perHouse };
        }
        await delay(CHECK_EVERY_MS);
      }
    },
    longestSilence,
    async close() {
      isClosed = true;
      await watching;
    },
  };
}

async function newestPolls(sql: Sql): Promise<{ house: string; at: number | null }[]> {
  try {
    return await sql<{ house: string; at: number | null }[]>`
      select house_id as house, extract(epoch from max(last_ok_at))::float8 * 1000 as at
      from poll_leases
      group by house_id`;
  } catch {
    return []; // PostgreSQL is away: that is what some of the cases are about
  }
}
