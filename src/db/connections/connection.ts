import { Socket } from "node:net";
import pg from "pg";
import { ConnectionLostError, isConnectionClosing } from "../errors.ts";
import { rowTypes } from "../row-types.ts";

/** A server that accepts a connection and does not greet within this is out of reach. */
const CONNECT_MS = 5_000;
/** How long a close waits: a server that is gone does not respond to it. */
const FAREWELL_MS = 1_000;
/** The server notices a peer that vanished, and so do we, within a minute on an idle connection. */
const KEEP_ALIVE_MS = 10_000;

/**
 * One connection to PostgreSQL that can be destroyed, whatever its peer does.
 *
 * A connection can go silent without a reset: a firewall that forgot it, a proxy that no longer forwards. The driver then
 * waits for the rest of its life. So each wait has a deadline, past which the socket is destroyed and everything that
 * waited on it is rejected.
 */
export class Connection extends pg.Client {
  readonly #socket: Socket;
  #lost: Error | null = null;
  /** When the server last sent something, by `performance.now()`. */
  lastResponseAt = performance.now();

  constructor(config: pg.ClientConfig = {}) {
    const socket = new Socket();
    super({
      ...config,
      stream: () => socket,
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      types: rowTypes,
    });
    this.#socket = socket;
    // without a listener an error of the socket would end the process; whatever waits is rejected by the driver
    this.on("error", (error) => (this.#lost ??= error));
    this.on("end", () => (this.#lost ??= new Error("the connection ended")));
    this.once("connect", () => (this.lastResponseAt = performance.now()));
  }

  /** Sends what `send` gives to the driver in one write, instead of one per message. */
  inOneWrite<Result>(send: () => Result): Result {
    this.#socket.cork();
    try {
      return send();
    } finally {
      this.#socket.uncork();
    }
  }

  get isLost(): boolean {
    return this.#lost !== null;
  }

  /** What a cancel request names this connection's server process by; null until the server has greeted. */
  get backend(): { processId: number; secretKey: number } | null {
    const processId = "processID" in this ? this.processID : null; // the driver's types do not list the two
    const secretKey = "secretKey" in this ? this.secretKey : null;
    return typeof processId === "number" && typeof secretKey === "number" ? { processId, secretKey } : null;
  }

  /** Bytes that crossed the connection in either direction: a COPY shows its progress here. */
  get bytesMoved(): number {
    return this.#socket.bytesRead + this.#socket.bytesWritten;
  }

  /** Closes the socket without a farewell; everything that waits on the connection is rejected with `reason`. */
  destroy(reason: Error): void {
    this.#lost ??= reason;
    this.#socket.destroy(reason);
  }

  /** Ends the connection with a farewell, and destroys it when the server does not close it within a second. */
  async close(): Promise<void> {
    const reason = new ConnectionLostError("closed");
    const patience = setTimeout(() => this.destroy(reason), FAREWELL_MS);
    await this.end();
    clearTimeout(patience);
  }

  /**
   * Waits for the server's response to what `send` sends, no longer than `deadlineMs`; past it the connection is destroyed.
   * @throws ConnectionLostError when the connection ended before the response, whose fate is then unknown; else the
   * error of the server as it is.
   */
  async exchange<Response>(send: () => Promise<Response>, deadlineMs: number): Promise<Response> {
    const giveUp = () =>
      this.destroy(new ConnectionLostError(`PostgreSQL did not respond within ${deadlineMs} ms`, { isSilent: true }));
    let isOver = false;
    // a response that arrived while this process was busy is read first: timers run before sockets, immediates after them
    const deadline = setTimeout(() => setImmediate(() => isOver || giveUp()), deadlineMs);
    // a cursor that is being closed does not notice that its connection ended
    const ended = Promise.withResolvers<never>();
    const end = () => ended.reject(this.#lost);
    this.once("end", end);
    try {
      const response = await Promise.race([send(), ended.promise]);
      this.lastResponseAt = performance.now();
      return response;
    } catch (error) {
      if (error instanceof pg.DatabaseError) {
        this.lastResponseAt = performance.now();
        if (isConnectionClosing(error)) this.#lost ??= error;
        throw error;
      }
      if (this.#lost === null || this.#lost instanceof ConnectionLostError) throw this.#lost ?? error;
      throw new ConnectionLostError("the connection to PostgreSQL was lost", { cause: this.#lost });
    } finally {
      isOver = true;
      clearTimeout(deadline);
      this.off("end", end);
    }
  }
}
