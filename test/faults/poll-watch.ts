import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../../src/db/client.ts";

/** The resolution of the measured recovery. */
const CHECK_EVERY_MS = 50;
/** Houses are polled five times a second; a house that was not polled for longer than this has not recovered. */
const PACE_MS = 2_000;
/** On a busy machine the pace is this many times the longest silence before the fault. */
const BUSY_FACTOR = 3;
/** A house has recovered after this many polls at its pace: a single one may have been running before the fault. */
const POLLS = 3;

/** Observes successful polls. Times are those of the database, which uses the clock of this machine. */
export interface PollWatch {
  /** Adapts the pace to the polls since `sinceMs`. Returns the longest silence in seconds. */
  learnPace(sinceMs: number): number;
  /**
   * Waits until each house is polled at its pace again. Returns the seconds from `fromMs` to the first of three successful
   * polls at that pace, for the slowest house; null after the timeout.
   */
  waitForRecovery(fromMs: number, timeoutMs: number, houses?: readonly string[]): Promise<number | null>;
  /**
   * Watches polls for at least `watchMs` and until no house is silent. Returns the seconds from `fromMs` to the end of the
   * last silence longer than the pace: 0 if there was none, null if a house is still silent after `timeoutMs`. `perHouse`
   * lists the same for each house.
   */
  waitForLastSilence(
    fromMs: number,
    times: { watchMs: number; timeoutMs: number },
    houses?: readonly string[],
  ): Promise<{ seconds: number | null; perHouse: string }>;
  /** The longest time between successful polls of any of the houses, in seconds. */
  longestSilence(fromMs: number, toMs: number, houses: readonly string[]): number;
  close(): Promise<void>;
}

/** Starts to observe. During an outage of PostgreSQL nothing is observed, but no poll succeeds either. */
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

  /** The end of the last silence longer than the pace; `fromMs` if there was none, null if it continues at `now`. */
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
      const normal = longestSilence(sinceMs, Date.now(), houses);
      paceMs = Math.max(PACE_MS, BUSY_FACTOR * normal * 1_000);
      return normal;
    },
    async waitForRecovery(fromMs, timeoutMs, of = houses) {
      while (Date.now() < fromMs + timeoutMs) {
        const firsts = of.map((house) => firstOfPace(house, fromMs));
        if (firsts.every((at) => at !== null)) return Math.max(0, ...firsts.map((at) => (at - fromMs) / 1_000));
        await delay(CHECK_EVERY_MS);
      }
      return null;
    },
    async waitForLastSilence(fromMs, { watchMs, timeoutMs }, of = houses) {
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
    return []; // PostgreSQL is unavailable, as in some of the cases
  }
}
