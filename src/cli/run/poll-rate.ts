import type { HouseSettings } from "../../houses/settings/settings.ts";

/** A table that is polled too seldom, and what to do. */
export interface SlowPoll {
  found: string;
  advice: string;
}

/**
 * Each table with too long a poll interval: a forecast is issued only before the next round can begin, so
 * a response that is older than the pause between two rounds yields none. Two polls per shortest pause is the minimum.
 */
export function slowPolls(houses: HouseSettings[]): SlowPoll[] {
  return houses
    .filter((house) => house.enabled)
    .flatMap((house) =>
      house.tables
        .filter((table) => table.enabled && house.poll_every_ms > table.pause_ms / 2)
        .map((table) => ({
          found:
            `${house.id}/${table.game}/${table.market} is polled every ${house.poll_every_ms} ms and pauses ${table.pause_ms} ms ` +
            "between rounds: most forecasts will come too late to be issued",
          advice: `set poll_every_ms to ${Math.floor(table.pause_ms / 2)} or less`,
        })),
    );
}
