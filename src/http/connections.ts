import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** The connections of a server, by their state. */
export interface Connections {
  /** Registers a request; false if it exceeds the limit and must not be handled. */
  begin(request: IncomingMessage, response: ServerResponse): boolean;
  /**
   * Calls `then` after every earlier request of a connection has its response. Incomplete requests are not waited for.
   */
  afterResponses(socket: Socket, then: () => void): void;
  /**
   * Bounds the bytes that wait in memory because clients do not read, see {@link ConnectionLimits}; returns the number of
   * connections that it closed. Call it several times per second: a response is not bounded when it is made.
   */
  endUnread(): number;
  /** Closes connections that never sent a byte. */
  endSilent(): void;
  /** Closes all connections. */
  endAll(): void;
}

/** A request without a response so far. */
interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
}

/** The limits of one server and of one connection. */
export interface ConnectionLimits {
  connections: number;
  /** Requests on one connection that have no response yet. */
  pipelined: number;
  /**
   * Unread bytes of all responses. With more, connections end after `unreadStalledMs` without progress instead of
   * `stalledMs`, and with twice as many those with the most are closed, but never the only one.
   */
  unreadBytes: number;
  unreadStalledMs: number;
  /** The idle timeout of a connection during a response, for clients that do not read. */
  stalledMs: number;
}

/**
 * Limits a server's connections, and still accepts new ones: it closes the connection whose loss costs least. That is
 * the oldest one without a complete request, else the one that has been idle longest, else the one whose response takes
 * longest because its client does not read it. Refusing new connections, as Node would, would leave the server to
 * clients that open connections and send nothing.
 *
 * Of pipelined requests only the first few are handled, then the connection is closed. Node emits every request that it
 * has read, a thousand and more, before it serves other connections: 20 such clients delayed all others by a minute.
 */
export function boundConnections(server: Server, limits: ConnectionLimits): Connections {
  // each set is in order of insertion
  const silent = new Set<Socket>();
  const resting = new Set<Socket>();
  const busy = new Map<Socket, Set<Exchange>>();

  server.on("connection", (socket) => {
    if (silent.size + resting.size + busy.size >= limits.connections) {
      const [least] = silent.size > 0 ? silent : resting.size > 0 ? resting : busy.keys();
      if (least !== undefined) {
        forget(least); // its own close event arrives after more connections
        least.destroy();
      }
    }
    silent.add(socket);
    socket.once("close", () => forget(socket));
  });
  function forget(socket: Socket): void {
    silent.delete(socket);
    resting.delete(socket);
    busy.delete(socket);
  }
  return {
    begin(request, response) {
      const { socket } = request;
      const pending = busy.get(socket) ?? new Set();
      if (pending.size >= limits.pipelined || socket.destroyed) return false;
      const exchange = { request, response };
      pending.add(exchange);
      if (pending.size === limits.pipelined) response.setHeader("Connection", "close");
      silent.delete(socket);
      resting.delete(socket);
      busy.set(socket, pending);
      response.once("close", () => {
        pending.delete(exchange);
        if (pending.size === 0 && busy.delete(socket) && !socket.destroyed) resting.add(socket);
      });
      return true;
    },
    afterResponses(socket, then) {
      const pending = [...(busy.get(socket) ?? [])];
      const awaited = pending.filter(({ request, response }) => request.complete || response.headersSent);
      let left = awaited.length;
      if (left === 0) return then();
      for (const { response } of awaited) {
        response.once("close", () => {
          left -= 1;
          if (left === 0) then();
        });
      }
    },
    endUnread: boundUnread(busy, limits),
    endSilent() {
      for (const socket of silent) if (socket.bytesRead === 0) socket.destroy();
    },
    endAll() {
      for (const socket of [...silent, ...resting, ...busy.keys()]) socket.destroy();
    },
  };
}

/** Bounds the unread bytes of busy connections; the pressure ends at half of the bytes at which it begins. */
function boundUnread(
  busy: ReadonlyMap<Socket, ReadonlySet<Exchange>>,
  { unreadBytes, unreadStalledMs, stalledMs }: ConnectionLimits,
): () => number {
  let isPressed = false;
  return () => {
    const unread = [...busy].map(([socket, pending]) => ({ socket, bytes: unreadOf(pending) }));
    let sum = unread.reduce((total, { bytes }) => total + bytes, 0);
    isPressed = sum > (isPressed ? unreadBytes / 2 : unreadBytes);
    for (const { socket, bytes } of unread) {
      const patienceMs = isPressed && bytes > 0 ? unreadStalledMs : stalledMs;
      if (socket.timeout !== patienceMs) socket.setTimeout(patienceMs);
    }
    if (sum <= 2 * unreadBytes) return 0;
    let closed = 0;
    const [, ...others] = unread.toSorted((a, b) => a.bytes - b.bytes);
    for (const { socket, bytes } of others.toReversed()) {
      if (sum <= 2 * unreadBytes) break;
      sum -= bytes;
      socket.destroy();
      closed += 1;
    }
    return closed;
  };
}

function unreadOf(pending: ReadonlySet<Exchange>): number {
  return [...pending].reduce((bytes, { response }) => bytes + response.writableLength, 0);
}
