import type { HouseSettings } from "../../houses/settings/settings.ts";

/**
 * One sentence for each table with too long a poll interval: a forecast is issued only before the next round can begin, so
 * a response that is older than the pause between two rounds yields none. Two polls per shortest pause is the minimum.
 */
export function slowPolls(houses: HouseSettings[]): string[] {
  return houses
    .filter((house) => house.enabled)
    .flatMap((house) =>
      house.tables
        .filter((table) => table.enabled && house.poll_every_ms > table.pause_ms / 2)
        .map(
          (table) =>
            `${house.id}/${table.game}/${table.market} is polled every ${house.poll_every_ms} ms and pauses ${table.pause_ms} ms between rounds: ` +
            `most forecasts will come too late to be issued; set poll_every_ms to ${Math.floor(table.pause_ms / 2)} or less`,
        ),
    );
}
