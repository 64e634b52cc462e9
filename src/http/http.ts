import { createServer, STATUS_CODES, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { codeOf, UsageError } from "../errors.ts";
import type { Log } from "../log.ts";
import { boundConnections, type ConnectionLimits, type Connections } from "./connections.ts";
import { ApiError, errorBody, FAILURES, type ErrorCode } from "./errors.ts";
import { EVERY_ANSWER } from "./protection.ts";
import { JSON_TYPE, newRequestId } from "./request.ts";

const LARGEST_HEADERS = 16_384;
const STOP_WITHIN_MS = 8_000;
const LOOK_FOR_IDLE_MS = 50;

/** How much of a server one caller may hold on to. */
export interface ServerLimits extends ConnectionLimits {
  /** From the connection, or the end of the last answer, to the end of a request's headers. */
  headersWithinMs: number;
  /** The same to the end of its body: a form is 64 KiB at most. */
  requestWithinMs: number;
  /** How often the two are looked at. */
  lookEachMs: number;
  /** A connection on which nothing moves in the middle of an answer: whoever does not read it. */
  stalledMs: number;
  /** How long a connection is kept for the next request. */
  keepAliveMs: number;
  /** How long the other side has to end a connection that we have ended, and to read what we said last. */
  lingerMs: number;
}

export const LIMITS: ServerLimits = {
  headersWithinMs: 10_000,
  requestWithinMs: 15_000,
  lookEachMs: 1_000,
  stalledMs: 30_000,
  keepAliveMs: 65_000, // longer than the minute that load balancers keep one, so that it is they who end it
  lingerMs: 2_000,
  pipelined: 32,
  connections: 4_096, // 20 KB each where they say nothing: 80 MB, and below the files that a process may open
};

/** A server that takes requests. */
export interface OpenServer {
  /** Where it is reached from this machine, without a slash at its end. */
  url: string;
  port: number;
  /** From now on each response ends its connection, so that clients connect again, and elsewhere. */
  draining(): void;
  /** Takes no new connections, lets requests that run come to their end for 8 s, then cuts what is left. */
  close(): Promise<void>;
}

/** Where to serve; `variable` is the environment variable that names the port, for messages. */
export interface Address {
  host: string;
  port: number;
  variable: "PORT" | "WORKER_PORT";
}

/**
 * Serves over HTTP. What Node's parser refuses gets our error envelope too, instead of an empty answer, and no caller can
 * hold on to more of the server than `limits` says.
 * @param site the address under which the pages about errors are
 * @throws UsageError where the port or the host cannot be had.
 */
export async function openServer(
  answer: RequestListener,
  address: Address,
  site: () => string,
  log: Log,
  limits: ServerLimits = LIMITS,
): Promise<OpenServer> {
  const server = createServer({
    maxHeaderSize: LARGEST_HEADERS,
    headersTimeout: limits.headersWithinMs,
    requestTimeout: limits.requestWithinMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.lookEachMs,
    requireHostHeader: false, // ours is refused with an envelope, see refuseUnfit
  });
  server.timeout = limits.stalledMs;
  // 16 KB of headers are bound enough; by number Node would drop the rest unseen, a second key among them
  server.maxHeadersCount = 0;
  // a limit would have Node answer the rest of a pipeline 503 without a word
  server.maxRequestsPerSocket = 0;
  const connections = boundConnections(server, limits);
  let isDraining = false;
  server.on("request", (request, response) => {
    if (!connections.begin(request, response)) return;
    if (isDraining || !server.listening) response.setHeader("Connection", "close");
    // the rest of an unwanted body is dropped with its connection
    const { socket, headers } = request; // an aborted request loses its socket
    if (headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined) {
      response.once("finish", () => request.complete || finish(socket, limits));
    }
    answer(request, response);
  });
  // an expectation that we do not know changes nothing
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  // Node would cut the connection without a word
  server.on("connect", (_, socket) =>
    finish(socket, limits, refusal("method_not_allowed", site(), "Allow: GET, HEAD, OPTIONS")),
  );
  const refused = new WeakSet<Socket>();
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    log.debug(`a request could not be read: ${error.code ?? error.message}`);
    if (!socket.writable || error.code === "ECONNRESET") return void socket.destroy();
    if (refused.has(socket)) return; // the parser fails again on whatever else arrives
    refused.add(socket);
    connections.afterAnswers(socket, () => finish(socket, limits, refusal(failureOf(error), site())));
  });
  await listen(server, address);
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("expected the server to have a port");
  return {
    url: `http://${reachableHost(address.host)}:${bound.port}`,
    port: bound.port,
    draining: () => (isDraining = true),
    close: () => close(server, connections),
  };
}

async function listen(server: Server, { host, port, variable }: Address): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, resolve);
    });
  } catch (error) {
    const advice: Record<string, string> = {
      EADDRINUSE: `the port ${port} of ${host} is taken; stop what uses it, or set ${variable} to another (0 takes any free one)`,
      EACCES: `the port ${port} may not be used by this user; set ${variable} to one above 1023`,
      EADDRNOTAVAIL: `${host} is not an address of this machine; set HOST to one that is, or to 0.0.0.0 for all`,
      ENOTFOUND: `the host ${host} is not known; set HOST to an address of this machine`,
    };
    const message = advice[codeOf(error)];
    throw message === undefined ? error : new UsageError(message);
  }
}

async function close(server: Server, connections: Connections): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // connections that were busy a moment ago become idle one by one; Node does not count those that never said anything
  const endIdle = () => {
    server.closeIdleConnections();
    connections.endSilent();
  };
  endIdle();
  const idle = setInterval(endIdle, LOOK_FOR_IDLE_MS);
  const deadline = setTimeout(() => connections.endAll(), STOP_WITHIN_MS);
  try {
    await closed;
  } finally {
    clearInterval(idle);
    clearTimeout(deadline);
  }
}

function failureOf({ code }: NodeJS.ErrnoException): ErrorCode {
  if (code === "HPE_HEADER_OVERFLOW") return "headers_too_large";
  if (code === "HPE_CHUNK_EXTENSIONS_OVERFLOW") return "body_too_large";
  return code === "ERR_HTTP_REQUEST_TIMEOUT" ? "request_timeout" : "malformed_request";
}

/** Ends a connection with last words; the other side has a moment to read them, and to end it as well. */
function finish(socket: Duplex, { lingerMs }: ServerLimits, words = ""): void {
  socket.on("error", () => socket.destroy()); // Node lets go of the socket of a CONNECT, and of its errors
  socket.end(words);
  const moment = setTimeout(() => socket.destroy(), lingerMs);
  socket.once("close", () => clearTimeout(moment));
}

/** A whole HTTP answer, for a request of which there is no more than a socket. */
function refusal(code: ErrorCode, site: string, ...headers: string[]): string {
  const requestId = newRequestId();
  const body = errorBody(new ApiError(code), { site, requestId });
  const { status } = FAILURES[code];
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Error"}`,
    `Content-Type: ${JSON_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    ...EVERY_ANSWER.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${EVERY_ANSWER[at + 1]}`] : [])),
    "Connection: close",
    ...headers,
    "",
    body,
  ].join("\r\n");
}

function reachableHost(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}
