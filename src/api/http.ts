import { createServer, STATUS_CODES, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";
import { codeOf, UsageError } from "../errors.ts";
import type { Log } from "../log.ts";
import { ApiError, errorBody, FAILURES, type ErrorCode } from "./errors.ts";
import { EVERY_ANSWER } from "./protection.ts";
import { JSON_TYPE, newRequestId } from "./request.ts";

const LARGEST_HEADERS = 16_384;
const HEADERS_WITHIN_MS = 10_000;
const REQUEST_WITHIN_MS = 20_000;
/** Longer than the minute that load balancers keep a connection, so that it is they who end it. */
const KEEP_ALIVE_MS = 65_000;
const STOP_WITHIN_MS = 8_000;
const LOOK_FOR_IDLE_MS = 50;

/** A server that takes requests. */
export interface OpenServer {
  /** Where it is reached from this machine, without a slash at its end. */
  url: string;
  port: number;
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
 * Serves over HTTP. What Node's parser refuses gets our error envelope too, instead of an empty answer.
 * @param site the address under which the pages about errors are
 * @throws UsageError where the port or the host cannot be had.
 */
export async function openServer(
  answer: RequestListener,
  address: Address,
  site: () => string,
  log: Log,
): Promise<OpenServer> {
  const server = createServer({
    maxHeaderSize: LARGEST_HEADERS,
    headersTimeout: HEADERS_WITHIN_MS,
    requestTimeout: REQUEST_WITHIN_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: 2_000,
    requireHostHeader: false, // ours is refused with an envelope, see refuseUnfit
  });
  const open = new Set<Socket>();
  server.on("connection", (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  const answering = new WeakSet<Socket>();
  server.on("request", (request, response) => {
    const { socket } = request;
    answering.add(socket);
    response.once("close", () => answering.delete(socket));
    if (!server.listening) response.setHeader("Connection", "close");
    answer(request, response);
  });
  // an expectation that we do not know changes nothing
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  // Node would cut the connection without a word
  server.on("connect", (_, socket) => socket.end(refusal("method_not_allowed", site(), "Allow: GET, HEAD, OPTIONS")));
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    log.debug(`a request could not be read: ${error.code ?? error.message}`);
    // in the middle of an answer, more bytes would only spoil it
    const isLost = !socket.writable || answering.has(socket) || error.code === "ECONNRESET";
    if (isLost) socket.destroy();
    else socket.end(refusal(failureOf(error), site()));
  });
  await listen(server, address);
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("expected the server to have a port");
  return {
    url: `http://${reachableHost(address.host)}:${bound.port}`,
    port: bound.port,
    close: () => close(server, open),
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

async function close(server: Server, open: ReadonlySet<Socket>): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // connections that were busy a moment ago become idle one by one; Node does not count those that never said anything
  const endIdle = () => {
    server.closeIdleConnections();
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
  };
  endIdle();
  const idle = setInterval(endIdle, LOOK_FOR_IDLE_MS);
  const deadline = setTimeout(() => server.closeAllConnections(), STOP_WITHIN_MS);
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
