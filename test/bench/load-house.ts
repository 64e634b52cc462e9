/**
 * Serves any number of houses and tables. The rounds are a pure function of table and time, so the server keeps no state,
 * and the bench can compute when each round was published.
 */
import { createServer, type Socket } from "node:net";
import { once } from "node:events";

/** The load: houses, tables and pace. */
export interface Load {
  houses: number;
  tablesPerHouse: number;
  /** The average interval between two rounds of a table. */
  roundMs: number;
  seed: number;
  /** How the houses respond; immediately if not given. */
  behavior?: HouseBehavior;
  /** Adds one house of each of {@link FAULTY_HOUSES}, after the others. */
  hasFaultyHouses?: boolean;
}

/** Faulty houses: with 7,000 tables, without responses, with responses of 4 MB, with wrong ids and multipliers. */
export const FAULTY_HOUSES = [
  { kind: "many", tables: 7_000, pollMs: 60_000 },
  { kind: "hanging", tables: 100, pollMs: 2_000 },
  { kind: "large", tables: 100, pollMs: 2_000 },
  { kind: "lying", tables: 100, pollMs: 2_000 },
] as const;

/** How a house responds; `silent` and `slow` are shares of its responses in [0, 1]. */
export interface HouseBehavior {
  /** The shortest and the longest latency in milliseconds; most are near the shortest. */
  latencyMs: readonly [number, number];
  /** Never sent. */
  silent: number;
  /** Sent in ten pieces over a second. */
  slow: number;
}

/** The interval between two rounds varies from 0.4 to 1.6 of the average. */
const SPREAD = 0.6;
/** The time of round 0. */
const FIRST_MS = Date.UTC(2020, 0, 1);
/** Rounds in one response; real houses list 20 to 50. */
export const LISTED = 20;

/** The name of a house; its tables are `g0`, `g1` … of the market `m`. */
export function houseName(house: number): string {
  return `h${house}`;
}

/** When a round of a table is published, in milliseconds since 1970. */
export function publishedAtMs({ roundMs, seed }: Load, table: number, round: number): number {
  return FIRST_MS + (round + uniform(seed, table, -1) + SPREAD * uniform(seed, table, round)) * roundMs;
}

/** The number of the newest round that is published at a time. */
export function newestRound(load: Load, table: number, atMs: number): number {
  const latest = Math.floor((atMs - FIRST_MS) / load.roundMs - uniform(load.seed, table, -1));
  return publishedAtMs(load, table, latest) <= atMs ? latest : latest - 1;
}

/** The result of a round in hundredths: 0.99 / u, the distribution of crash games, at least 1.00. */
export function hundredthsOf({ seed }: Load, table: number, round: number): number {
  return Math.min(100_000_000, Math.max(100, Math.floor(99 / (1 - uniform(seed + 1, table, round)))));
}

/** A number in [0, 1): the finalizer of MurmurHash3, twice; a hundred times as fast as a cryptographic hash. */
function uniform(seed: number, table: number, round: number): number {
  return mixed(mixed(Math.imul(seed + 1, 0x9e3779b1) ^ table) ^ Math.imul(round, 0x85ebca6b)) / 2 ** 32;
}

function mixed(value: number): number {
  let h = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** The requests that the houses received. */
export interface RequestLog {
  requests: number;
  /** Responses with status 304. */
  unchanged: number;
  /** The times of the requests to each house, in epoch milliseconds. */
  arrivals: number[][];
}

/** All houses on one port: `/h<house>/rounds` lists all tables of a house, and faulty houses have `/h<house>/<table>/rounds`. */
export interface LoadHouse {
  port: number;
  /** Returns the requests since the last call. */
  take(): RequestLog;
  close(): Promise<void>;
}

const MOST_TABLES = 10_000;
const FILLER = "x".repeat(3_900_000);

const REQUEST = /^GET \/h(\d+)(?:\/(\d+))?\/rounds /;
const CONDITION = /\r\nif-none-match: "(\d+)"/i;

/**
 * Serves the houses. Supports only the HTTP that our poller uses (one request after another, without bodies), so that it
 * takes little CPU time from the measured processes.
 */
export async function serveLoad(load: Load): Promise<LoadHouse> {
  const responses = new Map<number, { tag: number; text: string }>();
  const sockets = new Set<Socket>();
  let asked = emptyRequestLog(load);

  function responseOf(house: number, nowMs: number): { tag: number; text: string } {
    const tables = Array.from({ length: load.tablesPerHouse }, (_, place) => house * load.tablesPerHouse + place);
    const newest = tables.map((table) => newestRound(load, table, nowMs));
    const tag = newest.reduce((sum, number) => sum + number, 0); // increases with every new round
    const kept = responses.get(house);
    if (kept?.tag === tag) return kept;
    const lists = tables.map((table, place) => {
      const last = newest[place] ?? 0;
      const rounds = Array.from({ length: LISTED }, (_, back) => ({
        id: last - back,
        multiplier: hundredthsOf(load, table, last - back) / 100,
      }));
      return [`g${place}`, rounds] as const;
    });
    const body = JSON.stringify(Object.fromEntries(lists));
    const text = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\netag: "${tag}"\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    const made = { tag, text };
    responses.set(house, made);
    return made;
  }

  function faultyResponse(kind: (typeof FAULTY_HOUSES)[number]["kind"], table: number): string | null {
    if (kind === "hanging") return null;
    const newest = newestRound(load, table, Date.now());
    const listed = Array.from({ length: LISTED }, (_, back) => {
      const isWrong = kind === "lying" && uniform(load.seed, newest, back) < 0.9;
      return { id: newest - back + (isWrong ? 9_000_000 * (back + 1) : 0), multiplier: isWrong ? 0 : 1.5 + (back % 7) };
    });
    const body = JSON.stringify({ rounds: listed, ...(kind === "large" && { more: FILLER }) });
    return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  }

  function respond(head: string): string | null {
    const [, house, place] = REQUEST.exec(head) ?? [];
    const hasFaultyHouses =
      load.hasFaultyHouses === true ? FAULTY_HOUSES[Number(house) - load.houses]?.kind : undefined;
    if (hasFaultyHouses !== undefined)
      return faultyResponse(hasFaultyHouses, Number(house) * MOST_TABLES + Number(place));
    const arrivals = asked.arrivals[Number(house)];
    if (arrivals === undefined || place !== undefined) return NOT_FOUND;
    const now = Date.now();
    asked.requests += 1;
    arrivals.push(now);
    const { tag, text } = responseOf(Number(house), now);
    if (CONDITION.exec(head)?.[1] !== String(tag)) return text;
    asked.unchanged += 1;
    return `HTTP/1.1 304 Not Modified\r\netag: "${tag}"\r\n\r\n`;
  }

  let sent = 0;
  function send(socket: Socket, text: string | null): void {
    if (text === null) return;
    const { behavior } = load;
    if (behavior === undefined) {
      socket.write(text, "latin1");
      return;
    }
    sent += 1;
    const [shortest, longest] = behavior.latencyMs;
    const kind = uniform(load.seed, sent, 1);
    if (kind < behavior.silent) return;
    const latency = shortest * (longest / shortest) ** (uniform(load.seed, sent, 2) ** 3);
    const pieces = kind < behavior.silent + behavior.slow ? 10 : 1;
    for (let piece = 0; piece < pieces; piece += 1) {
      const part = text.slice((piece * text.length) / pieces, ((piece + 1) * text.length) / pieces);
      setTimeout(() => socket.writable && socket.write(part, "latin1"), latency + piece * 100).unref();
    }
  }

  const server = createServer({ noDelay: true }, (socket) => {
    let rest = "";
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket)); // the pollers are killed
    socket.setEncoding("latin1").on("data", (text: string) => {
      const heads = (rest + text).split("\r\n\r\n");
      rest = heads.pop() ?? "";
      for (const head of heads) send(socket, respond(head));
    });
  });
  server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 });
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("expected a port for the load house, got none");
  return {
    port: address.port,
    take() {
      const taken = asked;
      asked = emptyRequestLog(load);
      return taken;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

const NOT_FOUND = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";

function emptyRequestLog({ houses }: Load): RequestLog {
  return { requests: 0, unchanged: 0, arrivals: Array.from({ length: houses }, () => []) };
}
