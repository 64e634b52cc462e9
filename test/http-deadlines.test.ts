import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { createHouseClient } from "../src/houses/polling/http.ts";
import { openMailServer } from "../src/mail/deliver.ts";
import { createClient } from "../src/topups/binance-pay/client.ts";
import { CHAINS } from "../src/config/usdt-chains.ts";
import { openEndpoints } from "../src/topups/usdt/endpoints/endpoint.ts";

const TIMEOUT_MS = 400;
/** Far above every deadline here, and far below those of the libraries (300 s for a body). */
const GENEROUS_MS = 8_000;
const BYTE_EVERY_MS = 50;

const servers: Server[] = [];
const sockets = new Set<Socket>();
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  for (const server of servers.splice(0)) server.close();
});

/** What a server does once a client has connected. With `nothing`, TLS is never established either. */
const STAGES = {
  nothing: () => undefined,
  "headers byte by byte": (socket: Socket) => drip(socket, "HTTP/1.1 200 OK\r\nx-filler: "),
  "a body byte by byte": (socket: Socket) =>
    drip(socket, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n"),
} satisfies Record<string, (socket: Socket) => void>;
type Stage = keyof typeof STAGES;
const stages = Object.keys(STAGES) as Stage[];

function drip(socket: Socket, first: string): void {
  socket.once("data", () => {
    socket.write(first);
    const timer = setInterval(() => socket.write(" "), BYTE_EVERY_MS);
    socket.on("close", () => clearInterval(timer));
  });
}

async function listen(act: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    act(socket);
    socket.resume();
  });
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return address.port;
}

const never = new AbortController().signal;

describe("a request to a house", () => {
  async function fetchFrom(url: string, nameServers: readonly string[] = []) {
    const client = createHouseClient({ version: "1", nameServers });
    try {
      return await client.fetch(
        { house: "alpha", url, method: "GET", headers: {}, timeoutMs: TIMEOUT_MS, allowPrivate: true },
        never,
      );
    } finally {
      await client.close();
    }
  }

  it.each(stages)("fails in time if the house sends %s", { timeout: GENEROUS_MS }, async (stage) => {
    const port = await listen(STAGES[stage]);
    expect(await fetchFrom(`http://127.0.0.1:${port}/`)).toMatchObject({ kind: "failed", reason: "timeout" });
  });

  it("fails in time if TLS is never established", { timeout: GENEROUS_MS }, async () => {
    const port = await listen(STAGES.nothing);
    expect(await fetchFrom(`https://127.0.0.1:${port}/`)).toMatchObject({ kind: "failed", reason: "timeout" });
  });

  it("fails in time if the name server does not respond", { timeout: GENEROUS_MS }, async () => {
    const silent = createSocket("udp4").bind(0, "127.0.0.1");
    await once(silent, "listening");
    const nameServer = `127.0.0.1:${silent.address().port}`;
    expect(await fetchFrom("http://house.example/", [nameServer])).toMatchObject({ kind: "failed", reason: "timeout" });
    silent.close();
  });
});

describe("a question to an RPC endpoint of a chain", () => {
  const ask = (url: string) => {
    const [endpoint] = openEndpoints(CHAINS.ethereum, [url], never, { timeoutMs: TIMEOUT_MS });
    return endpoint?.verify();
  };

  it.each(stages)("fails in time if the endpoint sends %s", { timeout: GENEROUS_MS }, async (stage) => {
    const port = await listen(STAGES[stage]);
    await expect(ask(`http://127.0.0.1:${port}/`)).rejects.toMatchObject({ name: "EndpointError", why: "timeout" });
  });

  it("fails in time if TLS is never established", { timeout: GENEROUS_MS }, async () => {
    const port = await listen(STAGES.nothing);
    await expect(ask(`https://127.0.0.1:${port}/`)).rejects.toMatchObject({ name: "EndpointError", why: "timeout" });
  });
});

describe("a call of the payment app", () => {
  const query = (url: string) => {
    const app = { url, key: "a merchant's key", secret: "a merchant's secret" };
    return createClient(app, never, { timeoutMs: TIMEOUT_MS }).queryOrder("1");
  };

  it.each(stages)("fails in time if the app sends %s", { timeout: GENEROUS_MS }, async (stage) => {
    const port = await listen(STAGES[stage]);
    expect(await query(`http://127.0.0.1:${port}`)).toMatchObject({
      ok: false,
      reason: "did not respond within 0.4 s",
    });
  });

  it("fails in time if TLS is never established", { timeout: GENEROUS_MS }, async () => {
    const port = await listen(STAGES.nothing);
    expect(await query(`https://127.0.0.1:${port}`)).toMatchObject({
      ok: false,
      reason: "did not respond within 0.4 s",
    });
  });
});

describe("a mail", () => {
  const SMTP = {
    nothing: () => undefined,
    "a greeting byte by byte": (socket: Socket) => {
      const timer = setInterval(() => socket.write("2"), BYTE_EVERY_MS);
      socket.on("close", () => clearInterval(timer));
    },
    "a greeting and a response byte by byte": (socket: Socket) => {
      socket.write("220 mail.example\r\n");
      drip(socket, "250-");
    },
  };

  it.each(Object.entries(SMTP))(
    "is given up in time if the server sends %s",
    { timeout: GENEROUS_MS },
    async (_, act) => {
      const port = await listen(act);
      const from = { name: "Roundhouse", address: "robot@example.com" };
      const server = openMailServer(`smtp://127.0.0.1:${port}`, from, { withinMs: TIMEOUT_MS });
      const mail = { recipient: "ann@example.com", subject: "s", body: "b", messageId: crypto.randomUUID() };
      expect(await server.deliver(mail, never)).toMatchObject({ outcome: "server-failure" });
      server.close();
    },
  );
});
