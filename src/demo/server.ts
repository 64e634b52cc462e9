import type { IncomingMessage } from "node:http";
import { reasonOf } from "../errors.ts";
import { json, type DemoResponse } from "./response.ts";
import { serveBustabitRounds, newestGame } from "./bustabit-rounds.ts";
import { LAST_GAME } from "./bustabit-v2.ts";
import { describeDemoHouse } from "./describe.ts";
import { serve, type DemoHouse } from "./serve.ts";
import { createSimulatedFeed } from "./simulated-feed.ts";
import { serveSimulatedRounds, SIMULATED_PATHS } from "./simulated-rounds.ts";
import { openTimeline } from "./timeline-file.ts";
import { speedAt } from "./timeline.ts";
import { createTrueChain } from "./true-chain.ts";

const BUSTABIT_PATH = "/bustabit/rounds";

/** How a demo house is started. */
interface DemoHouseOptions {
  /** 0 takes any free port. */
  port: number;
  host: string;
  /** The folder of demo-house.json, which has the time of its first start. */
  dataDir: string;
  /** 1 is one true game a second; from 0.01 to 1000. A changed speed continues with the same numbering. */
  speed: number;
  /** Which simulated rounds and faults are drawn. */
  seed: number;
  /** Epoch milliseconds; the system's clock where it is not given. */
  now?: () => number;
  /** Lines for people. */
  say?: (line: string) => void;
}

/**
 * Starts both demo houses, the true and the simulated one, on one HTTP server; see `/` there for what it serves.
 *
 * Its responses depend on the clock, the seed and the kept T0 alone: after a restart it continues as if it had never
 * stopped. Ready in a few milliseconds; the first response waits for at most some 0.2 s of hashing.
 * @throws RangeError for a speed or seed out of range; Error where the port or the data folder cannot be used.
 */
export async function startDemoHouse(options: DemoHouseOptions): Promise<DemoHouse> {
  const { port, host, dataDir, speed, seed, now = Date.now, say = () => undefined } = options;
  if (!(speed >= 0.01 && speed <= 1000)) throw new RangeError(`expected a speed from 0.01 to 1000, got ${speed}`);
  if (!Number.isSafeInteger(seed)) throw new RangeError(`expected a whole number as seed, got ${seed}`);
  const timeline = await openTimeline(dataDir, { nowMs: now(), speed, say });
  const stopped = new AbortController();
  const games = createTrueChain(stopped.signal);
  const feed = createSimulatedFeed(seed);
  if (newestGame(timeline, now()) === LAST_GAME) {
    say(`the demo house has played its last game, ${LAST_GAME}; delete demo-house.json in ${dataDir} to start again`);
  }

  const respond = async (request: IncomingMessage): Promise<DemoResponse> => {
    const url = URL.parse(request.url ?? "", "http://demo.invalid");
    if (url === null) return json({ error: "the address cannot be read" }, 400);
    const simulated = SIMULATED_PATHS.get(url.pathname);
    const mark = markOf(url.pathname);
    if (request.method !== "GET" && request.method !== "HEAD") {
      return json({ ...mark, error: `expected GET or HEAD, got ${request.method}` }, 405, { allow: "GET, HEAD" });
    }
    const nowMs = now();
    if (simulated !== undefined) return serveSimulatedRounds(simulated, url.searchParams, { timeline, nowMs, feed });
    if (url.pathname === BUSTABIT_PATH) return serveBustabitRounds(url.searchParams, { timeline, nowMs, games });
    if (url.pathname === "/") {
      return describeDemoHouse({ speed: speedAt(timeline, nowMs), newestGame: newestGame(timeline, nowMs), seed });
    }
    const paths = ["/", BUSTABIT_PATH, ...SIMULATED_PATHS.keys()];
    return json({ ...mark, error: `nothing is served there; expected one of ${paths.join(", ")}` }, 404);
  };

  const house = await serve({
    host,
    port,
    respond,
    onError: (request, error) => {
      if (!stopped.signal.aborted) say(`the demo house failed on ${request.url}: ${reasonOf(error)}`);
      return json({ ...markOf(request.url ?? ""), error: "the demo house failed; its output has the reason" }, 500);
    },
    say,
  });
  return {
    ...house,
    async close() {
      await house.close();
      stopped.abort(new Error("the demo house was closed"));
    },
  };
}

/** What every response below /simulated/ has, errors included. */
function markOf(pathname: string): { simulated?: true } {
  return pathname.startsWith("/simulated/") ? { simulated: true } : {};
}
