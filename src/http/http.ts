import { createServer, STATUS_CODES, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { codeOf, UsageError } from "../errors.ts";
import type { Log } from "../log.ts";
import { boundConnections, type ConnectionLimits, type Connections } from "./connections.ts";
import { ApiError, errorBody, FAILURES, type ErrorCode } from "./errors.ts";
import { COMMON_HEADERS } from "./protection.ts";
import { JSON_TYPE, newRequestId } from "./request.ts";

const LARGEST_HEADERS = 16_384;
const LOOK_FOR_IDLE_MS = 50;
const LOOK_FOR_UNREAD_MS = 100;

/** How much of a server one client may occupy. */
export interface ServerLimits extends ConnectionLimits {
  /** From the start of the connection, or the end of the last response, to the end of a request's headers. */
  headersWithinMs: number;
  /** From the same start to the end of the body: a form is at most 64 KiB. */
  requestWithinMs: number;
  /** The interval at which the two deadlines are checked. */
  checkEachMs: number;
  /** How long a connection is kept for the next request. */
  keepAliveMs: number;
  /** How long the client has to close a connection after we have, and to read the end of the response. */
  lingerMs: number;
  /** How long running requests may take after `close` was called. */
  stopWithinMs: number;
}

export const LIMITS: ServerLimits = {
  headersWithinMs: 10_000,
  requestWithinMs: 15_000,
  checkEachMs: 1_000,
  stalledMs: 30_000,
  keepAliveMs: 65_000, // longer than the minute of load balancers, so that they close idle connections
  lingerMs: 2_000,
  stopWithinMs: 8_000,
  pipelined: 32,
  connections: 4_096, // an idle one uses 20 KB: 80 MB in all, and fewer than the files that a process may open
  unreadBytes: 128 * 1024 * 1024,
  unreadStalledMs: 1_000,
};

/** A listening server. */
export interface OpenServer {
  /** Its address on this machine, without a trailing slash. */
  url: string;
  port: number;
  /** From now on each response closes its connection, so that clients reconnect elsewhere. */
  draining(): void;
  /** Accepts no new connections, lets running requests finish for up to `stopWithinMs`, then closes the rest. */
  close(): Promise<void>;
}

/** The address to listen on; `variable` is the environment variable of the port, for messages. */
export interface Address {
  host: string;
  port: number;
  variable: "PORT" | "WORKER_PORT";
}

/**
 * Serves over HTTP. Requests that Node's parser refuses get our error envelope instead of an empty response, and
 * `limits` bounds what one client can occupy.
 * @param site the public address, for the pages about errors
 * @throws UsageError if the port or the host is not available.
 */
export async function openServer(
  handle: RequestListener,
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
    connectionsCheckingInterval: limits.checkEachMs,
    requireHostHeader: false, // refused with our error envelope, see refuseUnfit
  });
  server.timeout = limits.stalledMs;
  // the limit of 16 KB is enough; a limit by number would drop later headers silently, possibly a second key
  server.maxHeadersCount = 0;
  // with a limit Node would respond to the rest of a pipeline with a bare 503
  server.maxRequestsPerSocket = 0;
  const connections = boundConnections(server, limits);
  endUnreadRegularly(server, connections, log);
  let isDraining = false;
  server.on("request", (request, response) => {
    if (!connections.begin(request, response)) return;
    if (isDraining || !server.listening) response.setHeader("Connection", "close");
    // the rest of an unwanted body is dropped with its connection
    const { socket, headers } = request; // an aborted request loses its socket
    if (headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined) {
      response.once("finish", () => request.complete || finish(socket, limits));
    }
    handle(request, response);
  });
  // unknown expectations are ignored
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  // Node would close the connection without a response
  server.on("connect", (_, socket) =>
    finish(socket, limits, refusal("method_not_allowed", site(), "Allow: GET, HEAD, OPTIONS")),
  );
  const refused = new WeakSet<Socket>();
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    log.debug(`a request could not be parsed: ${error.code ?? error.message}`);
    if (!socket.writable || error.code === "ECONNRESET") return void socket.destroy();
    if (refused.has(socket)) return; // the parser fails again on each later chunk
    refused.add(socket);
    connections.afterResponses(socket, () => finish(socket, limits, refusal(failureOf(error), site())));
  });
  await listen(server, address);
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("expected the server to have a port");
  return {
    url: `http://${reachableHost(address.host)}:${bound.port}`,
    port: bound.port,
    draining: () => (isDraining = true),
    close: () => close(server, connections, limits),
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
      EADDRINUSE: `the port ${port} of ${host} is in use; stop the other program, or set ${variable} to another port (0 for any free one)`,
      EACCES: `the port ${port} needs more rights than this user has; set ${variable} to a port above 1023`,
      EADDRNOTAVAIL: `${host} is not an address of this machine; set HOST to one of its addresses, or to 0.0.0.0 for all`,
      ENOTFOUND: `the host ${host} cannot be resolved; set HOST to an address of this machine`,
    };
    const message = advice[codeOf(error)];
    throw message === undefined ? error : new UsageError(message);
  }
}

function endUnreadRegularly(server: Server, connections: Connections, log: Log): void {
  const timer = setInterval(() => {
    const closed = connections.endUnread();
    if (closed > 0) log.warn(`${closed} connections were closed, because clients leave too many bytes unread`);
  }, LOOK_FOR_UNREAD_MS);
  server.once("close", () => clearInterval(timer));
}

async function close(server: Server, connections: Connections, { stopWithinMs }: ServerLimits): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // busy connections become idle one by one; Node does not count connections that never sent anything
  const endIdle = () => {
    server.closeIdleConnections();
    connections.endSilent();
  };
  endIdle();
  const idle = setInterval(endIdle, LOOK_FOR_IDLE_MS);
  const deadline = setTimeout(() => connections.endAll(), stopWithinMs);
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

/** Closes a connection after the last bytes; the client has a moment to read them and to close it too. */
function finish(socket: Duplex, { lingerMs }: ServerLimits, words = ""): void {
  socket.on("error", () => socket.destroy()); // Node no longer handles the socket of a CONNECT or its errors
  socket.end(words);
  const moment = setTimeout(() => socket.destroy(), lingerMs);
  socket.once("close", () => clearTimeout(moment));
}

/** A complete HTTP response, for a request whose response object is not available. */
function refusal(code: ErrorCode, site: string, ...headers: string[]): string {
  const requestId = newRequestId();
  const body = errorBody(new ApiError(code), { site, requestId });
  const { status } = FAILURES[code];
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Error"}`,
    `Content-Type: ${JSON_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    ...COMMON_HEADERS.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${COMMON_HEADERS[at + 1]}`] : [])),
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
