import type { IncomingMessage, ServerResponse } from "node:http";
import { connect as dial, type Socket } from "node:net";
import pino from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS, openServer } from "../../src/http/http.ts";
import { UsageError } from "../../src/errors.ts";
import { eventually } from "../support/eventually.ts";
import { errorBody, makeWorld, type World } from "../api/world.ts";
import { dial as dialWire, statusesIn } from "../security/raw.ts";

const ANY_PORT = { host: "127.0.0.1", port: 0, variable: "PORT" } as const;
const TEN_MINUTES = 600_000;
/** No connection is closed because of the time, so what waits for that waits until the test fails. */
const UNTIMED = {
  ...LIMITS,
  headersWithinMs: TEN_MINUTES,
  requestWithinMs: TEN_MINUTES,
  keepAliveMs: TEN_MINUTES,
  stalledMs: TEN_MINUTES,
  stopWithinMs: TEN_MINUTES,
};
const silent = pino({ level: "silent" });
let world: World;

beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

/** Sends bytes as they are and gives all that comes back until the connection ends. */
function exchange(bytes: string | Buffer, port = world.api.port): Promise<{ head: string; body: string }> {
  return new Promise((resolve, reject) => {
    const socket = dial(port, "127.0.0.1", () => socket.write(bytes));
    let text = "";
    socket.setEncoding("utf8");
    socket.on("data", (data: string) => (text += data));
    socket.on("error", reject);
    socket.on("close", () => {
      const [head = "", body = ""] = text.split("\r\n\r\n");
      resolve({ head, body });
    });
  });
}

describe("what cannot be read as a request", () => {
  it.each([
    ["garbage", "hello there\r\n\r\n", 400, "malformed_request"],
    [
      "binary garbage",
      Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x0d, 0x0a]),
      400,
      "malformed_request",
    ],
    ["a header without a colon", "GET / HTTP/1.1\r\nHost: a\r\nbroken\r\n\r\n", 400, "malformed_request"],
    ["an unknown version", "GET / HTTP/3.7\r\nHost: a\r\n\r\n", 400, "malformed_request"],
    [
      "two lengths",
      "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      400,
      "malformed_request",
    ],
    ["a request for a tunnel", "CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method_not_allowed"],
    ["no host", "GET /api/v1/games HTTP/1.1\r\nConnection: close\r\n\r\n", 400, "malformed_request"],
    ["headers of 20 KB", `GET / HTTP/1.1\r\nHost: a\r\nX-A: ${"a".repeat(20_000)}\r\n\r\n`, 431, "headers_too_large"],
    ["a URL of 20 KB", `GET /${"a".repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 431, "headers_too_large"],
    [
      "a URL of 5 KB",
      `GET /${"a".repeat(5_000)} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      414,
      "url_too_long",
    ],
    [
      "a body of 17 KB",
      "POST /api/v1/games HTTP/1.1\r\nHost: a\r\nContent-Length: 17000\r\n\r\n",
      413,
      "body_too_large",
    ],
  ])("%s gets the envelope", async (_, bytes, status, code) => {
    const { head, body } = await exchange(bytes);
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [A-Z]`));
    expect(head).toContain("application/json; charset=utf-8");
    const { error, request_id } = errorBody.parse(JSON.parse(body));
    expect(error).toMatchObject({ code, message: expect.any(String) });
    expect(head).toContain(`X-Request-Id: ${request_id}`);
    expect(head).not.toContain("chunked");
    const everywhere =
      /^(?:cache-control|vary|strict-transport-security|x-content-type-options|content-security-policy): /gim;
    expect(head.match(everywhere)).toHaveLength(5);
  });

  it("does not stop the server: the next request is served", async () => {
    expect((await world.get("/api/v1/games")).status).toBe(200);
  });

  it("a tunnel that is requested and closed immediately stops nothing", async () => {
    for (let count = 0; count < 20; count++) {
      const socket = dial(world.api.port, "127.0.0.1");
      socket.on("error", () => undefined);
      await new Promise((resolve) => socket.once("connect", resolve));
      socket.write(`CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n${"x".repeat(100_000)}`);
      setTimeout(() => socket.resetAndDestroy(), count % 5);
    }
    expect((await world.get("/api/v1/games")).status).toBe(200);
  });

  it("a small body changes nothing, and its connection is not used again", async () => {
    const { head } = await exchange(
      `GET /api/v1/games HTTP/1.1\r\nHost: a\r\nX-Api-Key: ${world.key}\r\nContent-Length: 2\r\n\r\n{}GET / HTTP/1.1\r\nHost: a\r\n\r\n`,
    );
    expect(head).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(head).toContain("Connection: close");
  });

  it("an unknown expectation changes nothing", async () => {
    const { head } = await exchange(
      "GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: a-miracle\r\nConnection: close\r\n\r\n",
    );
    expect(head).toMatch(/^HTTP\/1\.1 200 OK/);
  });
});

describe("a request that never ends", () => {
  it("is given up with the envelope", async () => {
    const limits = { ...LIMITS, headersWithinMs: 200, requestWithinMs: 200, checkEachMs: 50 };
    const server = await openServer(
      () => undefined,
      ANY_PORT,
      () => "",
      silent,
      limits,
    );
    const { head, body } = await exchange("GET /api/v1/games HTTP/1.1\r\nHost: a\r\nX-Begun: ", server.port);
    expect(head).toMatch(/^HTTP\/1\.1 408 /);
    expect(errorBody.parse(JSON.parse(body)).error.code).toBe("request_timeout");
    await server.close();
  });
});

describe("clients that do not read", () => {
  const MIB = 1024 * 1024;
  const large = Buffer.alloc(64 * MIB); // the kernel takes some 10 MiB of it for a client that does not read

  const readFrom = async (url: string) => Buffer.from(await (await fetch(url)).arrayBuffer()).equals(large);

  /** A server of large responses with `count` clients that ask one after another and read nothing. */
  async function withUnread(
    limits: { unreadBytes: number; unreadStalledMs: number },
    count: number,
    check: (server: {
      url: string;
      responses: readonly ServerResponse[];
      open: (path: string) => Promise<ServerResponse>;
    }) => Promise<void>,
  ): Promise<void> {
    const responses: ServerResponse[] = [];
    const handle = (request: IncomingMessage, response: ServerResponse) => {
      responses.push(response);
      if (request.url !== "/waiting") response.end(request.url === "/small" ? large.subarray(0, 12 * MIB) : large);
    };
    const server = await openServer(handle, ANY_PORT, () => "", silent, { ...UNTIMED, ...limits });
    const clients: Socket[] = [];
    const open = async (path: string) => {
      const client = dial(server.port, "127.0.0.1", () => client.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`));
      client.on("error", () => undefined);
      clients.push(client.pause());
      return eventually(() => responses[clients.length - 1]);
    };
    while (clients.length < count) {
      await open("/");
    }
    await check({ url: server.url, responses, open });
    for (const client of clients) client.destroy();
    await server.close();
  }

  it("are closed sooner while they leave many bytes in memory, and one that reads has its response", async () => {
    await withUnread({ unreadBytes: 100 * MIB, unreadStalledMs: 3_000 }, 2, async ({ url, responses }) => {
      do expect(await readFrom(url)).toBe(true);
      while (responses[0]?.destroyed !== true);
    });
  });

  it("are left alone for longer while they leave few", async () => {
    await withUnread({ unreadBytes: 140 * MIB, unreadStalledMs: 1 }, 1, async ({ url, responses }) => {
      for (let n = 0; n < 10; n++) expect(await readFrom(url)).toBe(true);
      expect(responses[0]?.destroyed).toBe(false);
    });
  });

  it("have their usual time again once half as many bytes are unread, and always if none of theirs are", async () => {
    const pressedMs = TEN_MINUTES / 2;
    await withUnread({ unreadBytes: 150 * MIB, unreadStalledMs: pressedMs }, 3, async ({ responses, open }) => {
      const [first, second, third] = responses;
      const waiting = await open("/waiting");
      await eventually(() => first?.socket?.timeout === pressedMs);
      third?.destroy();
      const small = await open("/small");
      await eventually(() => small.socket?.timeout === pressedMs);
      expect(waiting.socket?.timeout).toBe(TEN_MINUTES);
      for (const other of [second, small]) other?.destroy();
      await eventually(() => first?.socket?.timeout === TEN_MINUTES);
    });
  });

  it("leave at most twice that in memory: those with the most are closed, but never the only one", async () => {
    await withUnread({ unreadBytes: 10 * MIB, unreadStalledMs: TEN_MINUTES }, 3, async ({ responses }) => {
      await eventually(() => responses.filter(({ destroyed }) => destroyed).length === 2);
      expect(responses.filter(({ destroyed }) => !destroyed)).toHaveLength(1);
    });
  });
});

describe("closing", () => {
  it("lets a request that runs come to its end, and takes no new ones", async () => {
    const running: ServerResponse[] = [];
    const server = await openServer(
      (_, response) => void running.push(response),
      ANY_PORT,
      () => "",
      silent,
      UNTIMED,
    );
    const answer = fetch(server.url);
    await eventually(() => running.length === 1);
    const closed = server.close();
    await eventually(async () => expect(await fetch(server.url).catch(() => "refused")).toBe("refused"));
    running[0]?.end("late, and whole");
    expect(await (await answer).text()).toBe("late, and whole");
    await closed; // the caller keeps the connection for its next request, and it must not keep us
  });

  it("closes requests that take longer than it waits for them", async () => {
    const running: ServerResponse[] = [];
    const limits = { ...UNTIMED, stopWithinMs: 100 };
    const server = await openServer(
      (_, response) => void running.push(response),
      ANY_PORT,
      () => "",
      silent,
      limits,
    );
    const answer = fetch(server.url).catch(() => "closed");
    await eventually(() => running.length === 1);
    await server.close();
    expect(await answer).toBe("closed");
  });

  it("does not wait for connections that do nothing: neither for used ones nor for one that never asked", async () => {
    const server = await openServer(
      (_, response) => void response.end("here"),
      ANY_PORT,
      () => "",
      silent,
      UNTIMED,
    );
    const connected = new Promise<void>(
      (resolve) => void dial(server.port, "127.0.0.1", resolve).on("error", () => undefined),
    );
    await connected;
    expect(await (await fetch(server.url)).text()).toBe("here"); // and undici keeps it for the next
    await server.close();
  });

  it("is not damaged by garbage that follows a request in the middle of its response", async () => {
    const running: ServerResponse[] = [];
    const server = await openServer(
      (_, response) => {
        response.writeHead(200, { "Content-Length": 10 });
        response.write("begun ");
        running.push(response);
      },
      ANY_PORT,
      () => "",
      silent,
    );
    const wire = dialWire(server.port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n\0garbage\r\n\r\n");
    await eventually(() => wire.text().includes("begun"));
    running[0]?.end("done");
    await wire.ended;
    expect(statusesIn(wire.text())).toEqual([200, 400]);
    expect(wire.text()).toContain("\r\n\r\nbegun doneHTTP/1.1 400");
    await server.close();
  });
});

describe("opening", () => {
  it("on a port that is in use names the port, and the variable to set", async () => {
    const error: unknown = await makeWorld({ PORT: world.api.port }, { on: world }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UsageError);
    expect(String(error)).toContain(
      `the port ${world.api.port} of 127.0.0.1 is in use; stop the other program, or set PORT to another port (0 for any free one)`,
    );
  });

  it("on an address of another machine names HOST", async () => {
    const elsewhere = { ...ANY_PORT, host: "192.0.2.1" };
    await expect(
      openServer(
        () => undefined,
        elsewhere,
        () => "",
        silent,
      ),
    ).rejects.toThrow(/192\.0\.2\.1 is not an address of this machine; set HOST/);
  });

  it("on all addresses gives one that can be asked", async () => {
    const server = await openServer(
      (_, response) => void response.end("here"),
      { ...ANY_PORT, host: "0.0.0.0" },
      () => "",
      silent,
    );
    expect(await (await fetch(server.url)).text()).toBe("here");
    await server.close();
  });
});
