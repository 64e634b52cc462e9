/**
 * A house for any number of houses and tables: what is played when is a function of the table and the time alone, so
 * that nothing is kept, and whoever measures knows when each round could first be seen.
 */
import { createServer, type Socket } from "node:net";
import { once } from "node:events";

/** How much is played. */
export interface Load {
  houses: number;
  tablesPerHouse: number;
  /** From one round of a table to its next, on average. */
  roundMs: number;
  seed: number;
  /** How the houses answer: at once where it is left out. */
  manner?: Manner;
  /** Adds one house of each of {@link ODD}, after the others. */
  odd?: boolean;
}

/** Houses of a bad day: with 7,000 tables, that never answers, of 4 MB a response, and whose ids and multipliers are wrong. */
export const ODD = [
  { kind: "many", tables: 7_000, pollMs: 60_000 },
  { kind: "hanging", tables: 100, pollMs: 2_000 },
  { kind: "large", tables: 100, pollMs: 2_000 },
  { kind: "lying", tables: 100, pollMs: 2_000 },
] as const;

/** How a house answers: shares of its responses in [0, 1]. */
export interface Manner {
  /** The shortest and the longest latency in milliseconds; most are near the shortest. */
  latencyMs: readonly [number, number];
  /** Never answered. */
  silent: number;
  /** Sent in ten pieces over a second. */
  slow: number;
}

/** Some rounds are shorter and some longer: from 0.4 to 1.6 of the average lie between two. */
const SPREAD = 0.6;
/** Rounds are counted from here. */
const FIRST_MS = Date.UTC(2020, 0, 1);
/** Rounds in one answer, as houses list 20 to 50. */
export const LISTED = 20;

/** The name of a house; its tables are `g0`, `g1` … of the market `m`. */
export function houseName(house: number): string {
  return `h${house}`;
}

/** When a round of a table is published, in milliseconds since 1970. */
export function publishedAtMs({ roundMs, seed }: Load, table: number, round: number): number {
  return FIRST_MS + (round + chance(seed, table, -1) + SPREAD * chance(seed, table, round)) * roundMs;
}

/** The number of the newest round that is published at a time. */
export function newestRound(load: Load, table: number, atMs: number): number {
  const latest = Math.floor((atMs - FIRST_MS) / load.roundMs - chance(load.seed, table, -1));
  return publishedAtMs(load, table, latest) <= atMs ? latest : latest - 1;
}

/** What a round ended at, in hundredths: 0.99 / u, as crash games are drawn, and no less than 1.00. */
export function hundredthsOf({ seed }: Load, table: number, round: number): number {
  return Math.min(100_000_000, Math.max(100, Math.floor(99 / (1 - chance(seed + 1, table, round)))));
}

/** A number in [0, 1): the finalizer of MurmurHash3 over the three, twice; no cipher, and a hundred times as fast. */
function chance(seed: number, table: number, round: number): number {
  return mixed(mixed(Math.imul(seed + 1, 0x9e3779b1) ^ table) ^ Math.imul(round, 0x85ebca6b)) / 2 ** 32;
}

function mixed(value: number): number {
  let h = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** What was asked of the houses. */
export interface Asked {
  requests: number;
  /** Answered with 304. */
  unchanged: number;
  /** When each house was asked, in milliseconds since 1970. */
  arrivals: number[][];
}

/** All houses on one port: `/h<house>/rounds` lists all tables of a house, and odd houses have `/h<house>/<table>/rounds`. */
export interface LoadHouse {
  port: number;
  /** What was asked since the last call. */
  take(): Asked;
  close(): Promise<void>;
}

const MOST_TABLES = 10_000;
const FILLER = "x".repeat(3_900_000);

const REQUEST = /^GET \/h(\d+)(?:\/(\d+))?\/rounds /;
const CONDITION = /\r\nif-none-match: "(\d+)"/i;

/**
 * Serves the houses. What it speaks of HTTP is what our poller says: one request after another, no bodies; so it costs
 * a fraction of a server that is made for everyone, and leaves the processors to what is measured.
 */
export async function serveLoad(load: Load): Promise<LoadHouse> {
  const answers = new Map<number, { tag: number; text: string }>();
  const sockets = new Set<Socket>();
  let asked = nothingAsked(load);

  function answerOf(house: number, nowMs: number): { tag: number; text: string } {
    const tables = Array.from({ length: load.tablesPerHouse }, (_, place) => house * load.tablesPerHouse + place);
    const newest = tables.map((table) => newestRound(load, table, nowMs));
    const tag = newest.reduce((sum, number) => sum + number, 0); // none of them goes back
    const kept = answers.get(house);
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
    answers.set(house, made);
    return made;
  }

  function oddAnswer(kind: (typeof ODD)[number]["kind"], table: number): string | null {
    if (kind === "hanging") return null;
    const newest = newestRound(load, table, Date.now());
    const listed = Array.from({ length: LISTED }, (_, back) => {
      const isWrong = kind === "lying" && chance(load.seed, newest, back) < 0.9;
      return { id: newest - back + (isWrong ? 9_000_000 * (back + 1) : 0), multiplier: isWrong ? 0 : 1.5 + (back % 7) };
    });
    const body = JSON.stringify({ rounds: listed, ...(kind === "large" && { more: FILLER }) });
    return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  }

  function answer(head: string): string | null {
    const [, house, place] = REQUEST.exec(head) ?? [];
    const odd = load.odd === true ? ODD[Number(house) - load.houses]?.kind : undefined;
    if (odd !== undefined) return oddAnswer(odd, Number(house) * MOST_TABLES + Number(place));
    const arrivals = asked.arrivals[Number(house)];
    if (arrivals === undefined || place !== undefined) return NOT_FOUND;
    const now = Date.now();
    asked.requests += 1;
    arrivals.push(now);
    const { tag, text } = answerOf(Number(house), now);
    if (CONDITION.exec(head)?.[1] !== String(tag)) return text;
    asked.unchanged += 1;
    return `HTTP/1.1 304 Not Modified\r\netag: "${tag}"\r\n\r\n`;
  }

  let sent = 0;
  function send(socket: Socket, text: string | null): void {
    if (text === null) return;
    const { manner } = load;
    if (manner === undefined) {
      socket.write(text, "latin1");
      return;
    }
    sent += 1;
    const [shortest, longest] = manner.latencyMs;
    const kind = chance(load.seed, sent, 1);
    if (kind < manner.silent) return;
    const latency = shortest * (longest / shortest) ** (chance(load.seed, sent, 2) ** 3);
    const pieces = kind < manner.silent + manner.slow ? 10 : 1;
    for (let piece = 0; piece < pieces; piece += 1) {
      const part = text.slice((piece * text.length) / pieces, ((piece + 1) * text.length) / pieces);
      setTimeout(() => socket.writable && socket.write(part, "latin1"), latency + piece * 100).unref();
    }
  }

  const server = createServer({ noDelay: true }, (socket) => {
    let rest = "";
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket)); // who polls is killed in the end
    socket.setEncoding("latin1").on("data", (text: string) => {
      const heads = (rest + text).split("\r\n\r\n");
      rest = heads.pop() ?? "";
      for (const head of heads) send(socket, answer(head));
    });
  });
  server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 });
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the load house has no port");
  return {
    port: address.port,
    take() {
      const taken = asked;
      asked = nothingAsked(load);
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

function nothingAsked({ houses }: Load): Asked {
  return { requests: 0, unchanged: 0, arrivals: Array.from({ length: houses }, () => []) };
}
