import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ConnectionError, Roundhouse, type ClientOptions } from "../../clients/typescript/src/index.ts";

const GAMES = JSON.stringify({ ok: true, plan: "Pro", games: [] });
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

type Respond = (response: ServerResponse, request: IncomingMessage) => void;

/** The address of a server that gives the n-th request to the n-th function, and later ones to the last. */
async function serve(...responds: Respond[]): Promise<string> {
  let received = 0;
  const server = createServer((request, response) => {
    responds[Math.min(received++, responds.length - 1)]?.(response, request);
  }).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A client, the status and `If-None-Match` of each request it sent, and its waits. */
function makeClient(url: string, options: Partial<ClientOptions> = {}) {
  const sent: [status: number, etag: string | null][] = [];
  const waits: number[] = [];
  const api = new Roundhouse({
    url,
    key: "rh_live_secret",
    async fetch(request) {
      const response = await fetch(request);
      sent.push([response.status, request.headers.get("If-None-Match")]);
      return response;
    },
    wait(seconds) {
      waits.push(seconds);
      return Promise.resolve();
    },
    ...options,
  });
  return { api, sent, waits };
}

const whole: Respond = (response, request) => {
  if (request.headers["if-none-match"] === '"a"') response.writeHead(304, { ETag: '"a"' }).end();
  else response.writeHead(200, { ETag: '"a"', "Content-Type": "application/json" }).end(GAMES);
};

/** Sends the head of a response and a part of its body, then closes the connection. */
function breakingOff(status: number, headers: Record<string, string> = {}): Respond {
  return (response) => {
    response.writeHead(status, { ETag: '"a"', ...headers, "Content-Length": GAMES.length });
    response.write(GAMES.slice(0, 10), () => response.destroy());
  };
}

describe("a response whose body breaks off", () => {
  it("is requested again, and the whole one is kept for its ETag", async () => {
    const { api, sent, waits } = makeClient(await serve(breakingOff(200), whole));
    expect(await api.games()).toEqual(JSON.parse(GAMES));
    expect(await api.games()).toEqual(JSON.parse(GAMES));
    expect(sent).toEqual([
      [200, null],
      [200, null],
      [304, '"a"'],
    ]);
    expect(waits).toEqual([0.5]);
  });

  it("is a ConnectionError after the last attempt, and the next call succeeds", async () => {
    const url = await serve(breakingOff(200), breakingOff(200), whole);
    const { api, sent } = makeClient(url, { attempts: 2 });
    const error: unknown = await api.games().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(String(error)).toMatch(/^ConnectionError: the response of http:\/\/127\.0\.0\.1:\d+ broke off: \w/);
    expect(await api.games()).toEqual(JSON.parse(GAMES));
    expect(sent.map(([, etag]) => etag)).toEqual([null, null, null]);
  });

  it("is waited for as long as its Retry-After states", async () => {
    const { api, waits } = makeClient(await serve(breakingOff(429, { "Retry-After": "7" }), whole));
    await api.games();
    expect(waits).toEqual([7]);
  });

  it("is a ConnectionError if it stops within the deadline of an attempt", async () => {
    const url = await serve((response) => void response.writeHead(200, { ETag: '"a"' }).write("{"));
    const { api } = makeClient(url, { attempts: 1, timeoutSeconds: 0.1 });
    await expect(api.games()).rejects.toThrow(ConnectionError);
  });

  it("is not requested again if the caller aborted", async () => {
    const caller = new AbortController();
    const url = await serve((response) => {
      response.writeHead(200, { ETag: '"a"' });
      response.write("{", () => caller.abort(new Error("not needed any more")));
    }, whole);
    const { api, sent } = makeClient(url);
    await expect(api.games({}, { signal: caller.signal })).rejects.toThrow("not needed any more");
    expect(await api.games()).toEqual(JSON.parse(GAMES));
    expect(sent.at(-1)).toEqual([200, null]);
  });

  it("is not kept for its ETag if its connection has no length and the part is not JSON", async () => {
    const { api, sent } = makeClient(
      await serve((response) => {
        response.useChunkedEncodingByDefault = false;
        response.writeHead(200, { ETag: '"a"', Connection: "close" }).end(GAMES.slice(0, 10));
      }, whole),
    );
    await expect(api.games()).rejects.toThrow(ConnectionError);
    expect(await api.games()).toEqual(JSON.parse(GAMES));
    expect(sent.map(([, etag]) => etag)).toEqual([null, null]);
  });
});

describe("a redirect", () => {
  it.each([301, 302, 303, 307, 308])("with %s is not followed, since the request has the key", async (status) => {
    const keys: unknown[] = [];
    const target = await serve((response, request) => {
      keys.push(request.headers["x-api-key"]);
      response.end(GAMES);
    });
    const url = await serve((response) => void response.writeHead(status, { Location: `${target}/moved` }).end());
    const { api, waits } = makeClient(url);
    for (const call of [() => api.games(), () => api.checkLog()]) {
      const error: unknown = await call().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ConnectionError);
      expect(String(error)).toContain(`expected a response of ${url}, got a redirect to ${target}/moved`);
    }
    expect(keys).toEqual([]);
    expect(waits).toEqual([]);
  });

  it("to a path of the same address is named with its address", async () => {
    const url = await serve((response) => void response.writeHead(302, { Location: "/login" }).end());
    await expect(makeClient(url).api.games()).rejects.toThrow(`got a redirect to ${url}/login`);
  });
});

describe("a call that waits for its next attempt", () => {
  const tooFast: Respond = (response) => void response.writeHead(429, { "Retry-After": "50" }).end();

  it("ends as soon as its caller aborts, with its timer", async () => {
    const [started, ended] = [vi.spyOn(globalThis, "setTimeout"), vi.spyOn(globalThis, "clearTimeout")];
    try {
      const caller = new AbortController();
      const api = new Roundhouse({ url: await serve(tooFast), key: "rh_live_secret" });
      const call = api.games({}, { signal: caller.signal });
      const timer = await vi.waitFor(() => {
        const at = started.mock.calls.findIndex(([, ms]) => ms === 50_000);
        expect(at).toBeGreaterThanOrEqual(0);
        return started.mock.results[at]?.value as NodeJS.Timeout;
      }, 20_000);
      caller.abort(new Error("not needed any more"));
      await expect(call).rejects.toThrow("not needed any more");
      expect(ended).toHaveBeenCalledWith(timer);
    } finally {
      vi.restoreAllMocks();
    }
  });

  it("ends as soon as its caller aborts, also if the given `wait` continues", async () => {
    const caller = new AbortController();
    const wait = () => {
      caller.abort(new Error("not needed any more"));
      return new Promise<void>(() => undefined);
    };
    const { api, sent } = makeClient(await serve(tooFast), { wait });
    await expect(api.games({}, { signal: caller.signal })).rejects.toThrow("not needed any more");
    expect(sent).toHaveLength(1);
  });
});
