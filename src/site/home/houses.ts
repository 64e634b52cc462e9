import { statusOf, type Status } from "../../houses/status.ts";
import type { Tone } from "../../frame/text/format.ts";
import type { ListedHouse } from "../site-store.ts";

/** A house as pages show it. */
export type ShownHouse = ListedHouse & { status: Status; tone: Tone };

/** The tone of each status. */
export const STATUS_TONES: Record<Status, Tone> = { live: "good", stale: "warn", offline: "bad", paused: "info" };

/** Adds the status badge, by the same rule as in the API. */
export function shownHouse(house: ListedHouse, liveWindowMs: number): ShownHouse {
  const { lastRoundAgeMs: newestPolledAgeMs, paused, enabled } = house;
  const status = statusOf({ newestPolledAgeMs, paused, enabled }, liveWindowMs);
  return { ...house, status, tone: STATUS_TONES[status] };
}
