import { once } from "node:events";
import { createServer } from "node:http";
import { draw } from "../../../src/demo/draw.ts";

/** Rounds in a response, as many as houses usually list. */
export const LISTED = 20;
const SEED = 10;
const PATH = "/tables/";

/** A house that plays the next rounds of a table only on request, so that it is never ahead of its poller. */
export interface LoopHouse {
  url: string;
  tables: number;
  /** Plays the next `rounds` rounds of a table. */
  play(table: number, rounds: number): void;
  /** The id of a table's newest round; ids count from 1. */
  newest(table: number): number;
  /** The number of requests so far. */
  requests(): number;
  close(): Promise<void>;
}

/**
 * Serves tables over HTTP on loopback, each with its newest {@link LISTED} rounds, newest first. Every instance plays the
 * same rounds, since they depend only on table and id.
 */
export async function serveLoopHouse(tables: number): Promise<LoopHouse> {
  const newest = Array.from({ length: tables }, () => LISTED);
  const bodies = newest.map((id, table) => bodyOf(table, id));
  let requests = 0;
  const server = createServer((request, response) => {
    const body = bodies[Number(request.url?.slice(PATH.length))];
    requests++;
    if (body === undefined) return void response.writeHead(404).end();
    response.writeHead(200, { "content-type": "application/json", "content-length": body.length }).end(body);
  });
  // the poller is stopped between two slices
  server.on("connection", (socket) => socket.on("error", () => undefined));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("expected a port for the house, got none");
  return {
    url: `http://127.0.0.1:${address.port}`,
    tables,
    play(table, rounds) {
      const id = (newest[table] ?? 0) + rounds;
      newest[table] = id;
      bodies[table] = bodyOf(table, id);
    },
    newest: (table) => newest[table] ?? 0,
    requests: () => requests,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** The path of a table's rounds. */
export function pathOf(table: number): string {
  return `${PATH}${table}`;
}

function bodyOf(table: number, newest: number): Buffer {
  const rounds = Array.from({ length: LISTED }, (_, place) => {
    const id = newest - place;
    return { id, multiplier: multiplierOf(draw(SEED, table, id)) };
  });
  return Buffer.from(JSON.stringify({ rounds }));
}

/** A fair game with an edge of 1 %: the probability of a multiplier of at least x is 0.99 / x. */
function multiplierOf(uniform: number): number {
  return Math.max(100, Math.min(1_000_000, Math.floor(99 / (1 - uniform)))) / 100;
}
