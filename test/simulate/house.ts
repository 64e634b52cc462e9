import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { draw } from "../../src/demo/draw.ts";
import {
  withheldUntil,
  isLost,
  isShared,
  generateRounds,
  type HouseFaultKind,
  reportedEndMs,
  listedHundredths,
  findHouseFault,
  houseFaultsAt,
  type TrueTable,
  type Truth,
} from "./truth.ts";

/** About eight seconds of a table: after a longer pause a worker must fetch the history. */
const LISTED = 5;
const MAX_LISTED = 200;
/** A flapping house is alternately up and down for this long. */
const FLAP_MS = 350;

/** A request for lists of rounds, with its number and the current faults of its house. */
interface ListRequest {
  query: URLSearchParams;
  houseFaults: readonly HouseFaultKind[];
  number: number;
}

/** Distance of the wrong id of the fault "ahead" from the newest one. */
const AHEAD = 9_000_000;
/** Below the size limit of a response. The fault "large" sends eight of them per table, within the daily budget. */
const LARGE_BYTES = 3_900_000;
const LARGE_TIMES = 8;

/** The HTTP server of all houses. */
export interface HouseServer {
  url: string;
  /** Closes every connection, so that workers have to reconnect. */
  endConnections(): void;
  close(): Promise<void>;
}

/** Serves all houses of a simulation on one port: they list the true rounds, changed by their current faults. */
export async function serveHouses(truth: Truth): Promise<HouseServer> {
  const byPath = new Map(truth.tables.map((table) => [`/${table.house}/${table.game}/rounds`, [table]]));
  for (const house of truth.houseFaults.keys()) {
    byPath.set(
      `/${house}/rounds`,
      truth.tables.filter((table) => table.house === house),
    );
  }
  /** How often one fault has affected a response of a table. */
  const sent = new Map<string, number>();
  let requests = 0;

  /** Whether a fault of this kind is active and has affected fewer than `times` responses of the table. */
  function isDue({ house, game }: TrueTable, kind: HouseFaultKind, times: number): boolean {
    const fault = findHouseFault(truth, house, kind, Date.now());
    if (fault === undefined) return false;
    const key = `${house}/${game} ${kind} ${fault.number}`;
    const before = sent.get(key) ?? 0;
    sent.set(key, before + 1);
    return before < times;
  }

  function listOf(table: TrueTable, { query, houseFaults, number }: ListRequest) {
    const rounds = listed(truth, table, query, Date.now());
    const [newest] = rounds;
    if (!query.has("before") && newest !== undefined && isDue(table, "ahead", 1)) {
      rounds.unshift({ ...newest, id: newest.id + AHEAD });
    }
    if (houseFaults.includes("shuffled")) return rounds.toSorted((a, b) => draw(number, a.id) - draw(number, b.id));
    return houseFaults.includes("doubled") ? rounds.flatMap((round) => [round, round]) : rounds;
  }

  /** The body with the list of each table; the fault "damaged" replaces the first list by a string. */
  function bodyOf(tables: readonly TrueTable[], listRequest: ListRequest): string {
    const lists = tables.map((table, place) => [
      isShared(truth, table.house) ? table.game : "rounds",
      place === 0 && listRequest.houseFaults.includes("damaged") ? "gone" : listOf(table, listRequest),
    ]);
    const [first] = tables;
    const isLarge = first !== undefined && !listRequest.query.has("before") && isDue(first, "large", LARGE_TIMES);
    return JSON.stringify(Object.fromEntries(lists)) + (isLarge ? " ".repeat(LARGE_BYTES) : "");
  }

  const server = createServer((request, response) => {
    void respond(request, response).catch(() => response.destroy());
  });

  server.on("connection", (socket) => socket.on("error", () => undefined)); // workers are killed

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://house");
    const tables = byPath.get(url.pathname);
    const house = tables?.[0]?.house;
    if (tables === undefined || house === undefined) return void response.writeHead(404).end();
    const number = ++requests;
    const chance = (what: string) => draw(truth.seed, "request", what, number);
    const houseFaults = houseFaultsAt(truth, house, Date.now());
    if (houseFaults.includes("silent")) return;
    if (houseFaults.includes("cut") && chance("cut") < 0.5) return void request.socket.resetAndDestroy();
    if (houseFaults.includes("errors") && chance("errors") < 0.7) {
      const status = [500, 503, 429][Math.floor(3 * chance("status"))] ?? 500;
      return void response.writeHead(status, status === 500 ? {} : { "retry-after": "1" }).end("later");
    }
    if (houseFaults.includes("garbage")) {
      return void response
        .writeHead(200, { "content-type": "text/html" })
        .end("<!doctype html><title>Back soon</title>");
    }
    if (houseFaults.includes("flapping") && Math.floor(Date.now() / FLAP_MS) % 2 === 0) {
      return void response.writeHead(502, { connection: "close" }).end();
    }
    if (houseFaults.includes("slow")) await delay(900 * chance("slow"));
    const isHistory = url.searchParams.has("before");
    const text = bodyOf(tables, { query: url.searchParams, houseFaults, number });
    response.writeHead(200, { "content-type": "application/json", "content-length": text.length });
    // at most half of a history page is sent
    const isPartial = isHistory && houseFaults.includes("pages");
    if (!isPartial) return void response.end(text);
    response.write(text.slice(0, Math.floor((text.length / 2) * chance("page"))), () =>
      request.socket.resetAndDestroy(),
    );
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the houses have no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    endConnections: () => server.closeAllConnections(),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** The rounds that a table lists now: the newest, or those before one, newest first. */
function listed(truth: Truth, table: TrueTable, query: URLSearchParams, nowMs: number) {
  generateRounds(truth, table, nowMs);
  const before = Number(query.get("before") ?? Number.POSITIVE_INFINITY);
  const limit = Math.min(MAX_LISTED, Number(query.get("limit") ?? LISTED));
  const shown: { id: number; multiplier: number; ended_at: number }[] = [];
  for (let n = table.rounds.length - 1; n >= 0 && shown.length < limit; n--) {
    const round = table.rounds[n];
    if (round === undefined || round.id >= before) continue;
    if (isLost(truth, table, round) || (withheldUntil(truth, table, round) ?? 0) > nowMs) continue;
    shown.push({
      id: round.id,
      multiplier: listedHundredths(truth, table, round, nowMs) / 100,
      ended_at: reportedEndMs(truth, table, round),
    });
  }
  return shown;
}
