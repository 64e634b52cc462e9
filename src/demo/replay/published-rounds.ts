import type { RecordedRound } from "./rounds-file.ts";
import type { Schedule } from "./schedule.ts";
import type { PublishedRounds, PublishedRound } from "./wire.ts";

/** Gives what has been published by a wall time. Any page of it costs as much as it is long, however long the file is. */
export function listPublished(
  rounds: readonly RecordedRound[],
  schedule: Schedule,
): (nowMs: number) => PublishedRounds {
  const places = new Map(rounds.map(({ id }, place) => [id, place]));
  const publish = (place: number): PublishedRound => {
    const round = rounds[place];
    if (round === undefined) throw new RangeError(`expected a place below ${rounds.length}, got ${place}`);
    return { ...round, at: new Date(schedule.timeOf(place)) };
  };
  const below = (end: number, limit: number): PublishedRound[] =>
    Array.from({ length: Math.max(Math.min(limit, end), 0) }, (_, step) => publish(end - 1 - step));

  return (nowMs) => {
    const count = schedule.countPublished(nowMs);
    const publishedPlace = (id: string): number | null => {
      const place = places.get(id);
      return place === undefined || place >= count ? null : place;
    };
    return {
      count,
      newest: (limit, skipped = 0) => below(count - skipped, limit),
      find(id) {
        const place = publishedPlace(id);
        return place === null ? null : publish(place);
      },
      before(id, limit) {
        const place = publishedPlace(id);
        return place === null ? null : below(place, limit);
      },
    };
  };
}
