import type { DemoResponse } from "../response.ts";
import { numberOfId } from "./ids.ts";
import type { RecordedRounds } from "./rounds-file.ts";
import type { PublishedRounds, WireFormat } from "./wire.ts";

/** What a replay house plays. */
interface Replay {
  file: string;
  format: WireFormat;
  recorded: RecordedRounds;
  speed: number;
}

/** Houses that begin the next round about five seconds after one has ended: the default of `pause_ms`. */
const USUAL_PAUSE_MS = 5_000;

/** What is missing in the file, as sentences for the person who starts the replay. */
export function findings({ format, recorded }: Replay): string[] {
  const { rounds, missed, hasClock, hasRowNumbers } = recorded;
  const numbers = rounds.map(({ id }) => numberOfId(id));
  const holes = numbers.filter(
    (number, place) => place > 0 && number !== null && number !== (numbers[place - 1] ?? -2) + 1,
  );
  return [
    ...(hasRowNumbers ? ["the file has no ids: rounds are called by the number of their row, from 1"] : []),
    ...(hasClock ? [] : [`the file has no clock: at speed 1 a round is published every ${format.usualMs / 1000} s`]),
    ...(missed > 0 ? [`${missed} rounds have no multiplier in the file, and are published without one`] : []),
    ...(format.byPage === true && holes.length > 0
      ? [
          `ids are missing at ${holes.length} places: a client that reads round by round waits there for a page that never appears; --number-rows numbers the rounds`,
        ]
      : []),
  ];
}

/** The response to `/`: what is served, and the entry of houses.yaml that reads it. */
export function describeReplay(replay: Replay, published: PublishedRounds, url: string): DemoResponse {
  const { file, format, recorded, speed } = replay;
  const [newest] = published.newest(1);
  const feed = format.byPage === true ? [`first_round_id: ${newest?.id ?? 1}`] : format.feed;
  const lines = [
    `A replay for Roundhouse: recorded rounds, published again in the format of ${format.name}. No one can bet here.`,
    "",
    `${published.count} of the ${recorded.rounds.length} rounds of ${file} have been published, the newest is ${newest?.id ?? "none"}; speed ${speed}.`,
    ...findings(replay),
    "",
    ...format.serves.map((line) => `  ${line}`),
    "",
    "For houses.yaml, with ALLOW_PRIVATE_HOUSES=1:",
    "",
    ...entryOf(replay, url, feed),
  ];
  return { status: 200, contentType: "text/plain; charset=utf-8", body: `${lines.join("\n")}\n` };
}

function entryOf({ format, recorded, speed }: Replay, url: string, feed: readonly string[] | undefined): string[] {
  const pauseMs = Math.max(Math.round(USUAL_PAUSE_MS / speed), 1);
  const consecutive = recorded.rounds.every(({ id }) => numberOfId(id) !== null);
  return [
    "houses:",
    "  - id: replay",
    "    name: Recorded rounds",
    `    base_url: ${url}`,
    "    private: true",
    `    poll_every_ms: ${Math.max(Math.floor(pauseMs / 2), 100)}`,
    ...(format.headers === undefined ? [] : ["    headers:", ...format.headers.map((line) => `      ${line}`)]),
    "    tables:",
    "      - game: crash",
    "        market: replay",
    `        pause_ms: ${pauseMs}`,
    `        adapter: ${format.name}`,
    ...(feed === undefined ? [] : ["        feed:", ...feed.map((line) => `          ${line}`)]),
    `        round_ids: ${consecutive ? "consecutive" : "opaque"}`,
    `        colors: ${format.palette}`,
  ];
}
