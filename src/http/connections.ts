import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** The connections of a server, by what they are at. */
export interface Connections {
  /** Notes that a request came; false where it is one too many and must not be answered. */
  begin(request: IncomingMessage, response: ServerResponse): boolean;
  /**
   * Waits until everything that was asked on it before is answered, and then calls `then`. A request that is not complete
   * is not waited for: it never will be.
   */
  afterAnswers(socket: Socket, then: () => void): void;
  /** Ends those that never sent a byte. */
  endSilent(): void;
  /** Ends all of them, whatever they are at. */
  endAll(): void;
}

/** A request that is not answered yet. */
interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
}

/** How much one server, and one connection of it, takes at once. */
export interface ConnectionLimits {
  connections: number;
  /** Requests on one connection that are not answered yet. */
  pipelined: number;
}

/**
 * Holds a server to so many connections at once, and lets a new one in all the same: the one is ended for it by which
 * the least is lost. That is the oldest that has not sent a whole request yet, else the one that was answered longest
 * ago, else the one whose answer takes longest, which is one that does not read it. Refusing the new one, as Node would,
 * leaves whoever fills the server with connections that say nothing in possession of it.
 *
 * Of requests that come in one go so many are answered and the connection ends. Node hands over all that it has read, a
 * thousand and more, before it turns to anybody else: 20 senders of such goes kept all others waiting for a minute.
 */
export function boundConnections(server: Server, limits: ConnectionLimits): Connections {
  // each in the order in which its members came to it
  const silent = new Set<Socket>();
  const resting = new Set<Socket>();
  const answering = new Map<Socket, Set<Exchange>>();

  server.on("connection", (socket) => {
    if (silent.size + resting.size + answering.size >= limits.connections) {
      const [least] = silent.size > 0 ? silent : resting.size > 0 ? resting : answering.keys();
      if (least !== undefined) {
        forget(least); // its own close comes later, and more connections before it
        least.destroy();
      }
    }
    silent.add(socket);
    socket.once("close", () => forget(socket));
  });
  function forget(socket: Socket): void {
    silent.delete(socket);
    resting.delete(socket);
    answering.delete(socket);
  }
  return {
    begin(request, response) {
      const { socket } = request;
      const pending = answering.get(socket) ?? new Set();
      if (pending.size >= limits.pipelined || socket.destroyed) return false;
      const exchange = { request, response };
      pending.add(exchange);
      if (pending.size === limits.pipelined) response.setHeader("Connection", "close");
      silent.delete(socket);
      resting.delete(socket);
      answering.set(socket, pending);
      response.once("close", () => {
        pending.delete(exchange);
        if (pending.size > 0 || !answering.delete(socket)) return;
        if (!socket.destroyed) resting.add(socket);
      });
      return true;
    },
    afterAnswers(socket, then) {
      const pending = [...(answering.get(socket) ?? [])];
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
    endSilent() {
      for (const socket of silent) if (socket.bytesRead === 0) socket.destroy();
    },
    endAll() {
      for (const socket of [...silent, ...resting, ...answering.keys()]) socket.destroy();
    },
  };
}
