import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { once } from "node:events";

/** A house on loopback with a set response for each path, which records its requests. */
export interface BadHouse {
  url: string;
  /** Requests in the order of their arrival. */
  requests: { path: string; headers: IncomingHttpHeaders }[];
  /** Connections made to it so far. */
  connections(): number;
  /** Sets the response of a path; a path without one is 404. */
  on(path: string, listener: RequestListener): void;
  close(): Promise<void>;
}

export async function startBadHouse(port = 0): Promise<BadHouse> {
  const listeners = new Map<string, RequestListener>();
  const requests: BadHouse["requests"] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((request, response) => {
    const path = request.url ?? "/";
    requests.push({ path, headers: request.headers });
    const listener = listeners.get(path);
    if (listener === undefined) response.writeHead(404).end("no such page");
    else listener(request, response);
  });
  server.on("connection", (socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => undefined); // a client that hangs up early is what half of these tests are about
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the bad house has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    connections: () => connections,
    on: (path, listener) => void listeners.set(path, listener),
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** A good page of rounds, newest first, with ids up to `newest`. */
export function page(newest: number, count = 3): string {
  const rounds = Array.from({ length: count }, (_, n) => ({ id: newest - n, multiplier: 1.5 + n }));
  return JSON.stringify({ rounds });
}

/** Responds with this body. */
export function respondWith(
  body: string | Buffer,
  headers: Record<string, string> = {},
  status = 200,
): RequestListener {
  return (_, response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(body);
  };
}

/** Every kind of bad response that a real house has sent or may send. */
export const badResponses = {
  silence: () => undefined,
  reset: (request) => request.socket.resetAndDestroy(),
  hangUp: (_, response) => {
    response.writeHead(200, { "content-length": "1000" });
    response.write('{"rounds":[{"id":1');
    setImmediate(() => response.destroy());
  },
  slowBody: (_, response) => drip(response, '{"rounds":[]}'),
  slowHeaders: (request) => {
    request.socket.write("HTTP/1.1 200 OK\r\n");
    const timer = setInterval(() => request.socket.write("x-a: b\r\n"), 20);
    request.socket.on("close", () => clearInterval(timer));
  },
  notHttp: (request) => request.socket.end("SSH-2.0-OpenSSH_9.9\r\n"),
  manyHeaders: (_, response) => {
    response.writeHead(200, { "x-large": "a".repeat(20_000) });
    response.end("{}");
  },
  fiftyMegabytes: (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    pour(response, Buffer.alloc(1 << 20, "["), 50);
  },
  gzipBomb: respondWith(gzipSync(Buffer.alloc(50 << 20, " "), { level: 1 }), { "content-encoding": "gzip" }),
  brokenGzip: respondWith("this is not gzip", { "content-encoding": "gzip" }),
  cutGzip: respondWith(gzipSync(page(9, 50)).subarray(0, 60), { "content-encoding": "gzip" }),
  unknownEncoding: respondWith("{}", { "content-encoding": "compress" }),
  manyEncodings: respondWith("{}", { "content-encoding": "gzip, gzip, gzip" }),
  redirect: respondWith("", { location: "http://169.254.169.254/latest/meta-data?token=abcdef" }, 302),
  html: respondWith("<!doctype html><title>Back soon</title>", { "content-type": "text/html" }),
  empty: respondWith(""),
  truncatedJson: respondWith('{"rounds":[{"id":1,"multiplier":1.5},{"id":2,"mult'),
} satisfies Record<string, RequestListener>;

function drip(response: ServerResponse, text: string): void {
  response.writeHead(200, { "content-length": "100000" });
  const timer = setInterval(() => response.write(text), 20);
  response.on("close", () => clearInterval(timer));
}

function pour(response: ServerResponse, chunk: Buffer, times: number): void {
  if (times === 0 || response.destroyed) return void response.end();
  response.write(chunk, () => pour(response, chunk, times - 1));
}
