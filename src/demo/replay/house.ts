import type { IncomingMessage } from "node:http";
import { reasonOf, UsageError } from "../../errors.ts";
import { json, type DemoResponse } from "../response.ts";
import { serve, type DemoHouse } from "../serve.ts";
import { describeReplay, findings } from "./describe.ts";
import { wireFormats } from "./formats.ts";
import { readRecordedRounds, type RecordedRound } from "./rounds-file.ts";
import { scheduleOf } from "./schedule.ts";
import { listPublished } from "./published-rounds.ts";

/** Real bodies have some hundred bytes. */
const LONGEST_BODY = 65_536;

/** How a replay house is started. */
export interface ReplayOptions {
  /** CSV or gzipped CSV with the column multiplier, and maybe round_id, occurred_at and hash; oldest round first. */
  file: string;
  /** A wire format by its name: that of a named adapter, or json. */
  as: string;
  host: string;
  /** 0 takes any free port. */
  port: number;
  /** 1 plays as fast as it was recorded, or a round in the game's usual time where the file has no clock. */
  speed: number;
  /** The id of the round that is the newest at the start, those before it being history; default: the file's first. */
  from?: string;
  /** Calls rounds by their number in the file, from 1, and leaves out those without a multiplier. */
  numbered?: boolean;
  /** Epoch milliseconds; the system's clock where it is not given. */
  now?: () => number;
  /** Lines for people. */
  say?: (line: string) => void;
}

/** A replay house that listens. */
export interface ReplayHouse extends DemoHouse {
  /** The rounds it plays, oldest first. */
  rounds: readonly RecordedRound[];
  /** The wall time, in epoch milliseconds, that is published with the round at a place of `rounds`. */
  timeOfMs(place: number): number;
  /** The wall time, in epoch milliseconds, at which the round at a place of `rounds` is published for the first time. */
  publishedAtMs(place: number): number;
}

/**
 * Serves recorded rounds over HTTP in a house's own wire format, one after the other as they were recorded.
 *
 * Times are moved so that the round at `from` is played when the house starts, and lie as much closer together as it
 * plays faster; responses depend on the file and the clock alone. A restart starts again.
 * @throws UsageError for an unknown format or round; RangeError for a speed out of range; Error with the line where the
 * file is wrong, or where the port cannot be used.
 */
export async function createReplayHouse(options: ReplayOptions): Promise<ReplayHouse> {
  const { file, as, host, port, speed, from, now = Date.now, say = () => undefined } = options;
  const format = wireFormats.get(as);
  if (format === undefined) {
    throw new UsageError(
      `expected one of the formats ${[...wireFormats.keys()].join(", ")}, got ${JSON.stringify(as)}`,
    );
  }
  if (!(speed >= 0.01 && speed <= 1000)) throw new RangeError(`expected a speed from 0.01 to 1000, got ${speed}`);
  const recorded = await readRecordedRounds(file);
  const rounds = options.numbered === true ? numbered(recorded.rounds) : recorded.rounds;
  const place = from === undefined ? 0 : rounds.findIndex(({ id }) => id === from);
  if (place === -1) throw new UsageError(`expected the id of a round of ${file}, got ${JSON.stringify(from)}`);
  const startMs = now();
  const schedule = scheduleOf(rounds, { startMs, from: place, speed, usualMs: format.usualMs });
  const publishedBy = listPublished(rounds, schedule);
  const about = { file, format, recorded: { ...recorded, rounds }, speed };
  for (const line of findings(about)) say(line);

  const respond = async (request: IncomingMessage): Promise<DemoResponse> => {
    const url = URL.parse(request.url ?? "", "http://replay.invalid");
    if (url === null) return json({ error: "the address cannot be read" }, 400);
    const body = await bodyOf(request);
    if (body === null) return json({ error: `expected a body of at most ${LONGEST_BODY} bytes` }, 413);
    const published = publishedBy(now());
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : value]),
    );
    const served = format.respond({ method: request.method ?? "GET", url, headers, body }, published);
    if (served !== null) return served;
    if (url.pathname === "/") return describeReplay(about, published, house.url);
    return json({ error: `nothing is served there; expected ${format.serves.join(" or ")}` }, 404);
  };
  const house = await serve({
    host,
    port,
    respond,
    onError: (request, error) => {
      say(`the replay house failed on ${request.url}: ${reasonOf(error)}`);
      return json({ error: "the replay house failed; its output has the reason" }, 500);
    },
    say,
  });
  return { ...house, rounds, publishedAtMs: (at) => schedule.publishedAtMs(at), timeOfMs: (at) => schedule.timeOf(at) };
}

function numbered(rounds: readonly RecordedRound[]): RecordedRound[] {
  return rounds
    .filter(({ multiplier }) => multiplier !== null)
    .map((round, place) => ({ ...round, id: String(place + 1) }));
}

/** Null where it is too long. */
async function bodyOf(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) throw new Error("expected bytes");
    bytes += chunk.length;
    if (bytes <= LONGEST_BODY) chunks.push(chunk);
  }
  return bytes <= LONGEST_BODY ? Buffer.concat(chunks).toString("utf8") : null;
}
