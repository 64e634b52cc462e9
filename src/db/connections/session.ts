import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import Cursor from "pg-cursor";
import { from as copyFrom, to as copyTo } from "pg-copy-streams";
import pg from "pg";
import { cancelOnServer } from "./cancel.ts";
import type { Connection } from "./connection.ts";
import type { StatementNames } from "./statement-names.ts";
import { ConnectionLostError, isConnectionClosing } from "../errors.ts";
import { asError } from "../../errors.ts";
import type { Rows, StatementKind } from "../query.ts";
import { rowTypes } from "../row-types.ts";
import type { CompiledStatement } from "../statement.ts";

/** How often a COPY is looked at, to see whether bytes still move. */
const LOOK_MS = 1_000;
const CANCEL_AGAIN_MS = 500;

/** Runs statements on one connection, one after another, each with a deadline. */
export class Session {
  readonly connection: Connection;
  readonly #names: StatementNames | null;
  readonly #deadlineMs: number;
  #last: Promise<unknown> = Promise.resolve();
  #isStreaming = false;
  #isClosed = false;

  constructor(connection: Connection, names: StatementNames | null, deadlineMs: number) {
    this.connection = connection;
    this.#names = names;
    this.#deadlineMs = deadlineMs;
  }

  /** Refuses every later statement: the connection goes back to its pool. */
  close(): void {
    this.#isClosed = true;
  }

  /** Runs a statement after those that were given before it. @throws the server's error, or ConnectionLostError. */
  async run(
    statement: CompiledStatement,
    kind: StatementKind,
    signals: readonly AbortSignal[] = [],
  ): Promise<Rows<object[]>> {
    this.#requireFree();
    return rowsOf(await this.#queue(statement, kind, signals));
  }

  /**
   * Ends the transaction after the statements that were given before, and refuses every later one.
   * @throws Error when the server rolled back instead of committing, as it does after a statement failed.
   */
  async finish(command: "COMMIT" | "ROLLBACK"): Promise<void> {
    this.#requireNoStream();
    this.#isClosed = true;
    const result = await this.#queue({ text: command, values: [] }, "direct", []);
    if (result?.command === command) return;
    throw new Error(`expected a ${command}, found a ${result?.command}: a statement of the transaction failed`);
  }

  #queue(
    statement: CompiledStatement,
    kind: StatementKind,
    signals: readonly AbortSignal[],
  ): Promise<pg.QueryResult<object> | undefined> {
    const result = this.#last.then(() => this.#send(statement, kind, signals));
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #send(
    { text, values }: CompiledStatement,
    kind: StatementKind,
    signals: readonly AbortSignal[],
  ): Promise<pg.QueryResult<object> | undefined> {
    const name = kind === "prepared" ? this.#names?.of(text) : undefined;
    const result = await this.#exchange<pg.QueryResult<object> | pg.QueryResult<object>[]>(
      () => this.connection.query({ text, values, ...(name !== undefined && { name }) }),
      signals,
    );
    return Array.isArray(result) ? result.at(-1) : result;
  }

  /** Waits for the server's response; when one of `signals` aborts, the server is asked to end the statement. */
  async #exchange<Response>(send: () => Promise<Response>, signals: readonly AbortSignal[]): Promise<Response> {
    for (const signal of signals) signal.throwIfAborted();
    const cancelling: Promise<void>[] = [];
    let again: NodeJS.Timeout | undefined;
    const cancel = () => {
      clearTimeout(again); // two signals may abort
      cancelling.push(cancelOnServer(this.connection));
      // the server ignores a request that arrives between two messages of a statement
      again = setTimeout(cancel, CANCEL_AGAIN_MS);
    };
    for (const signal of signals) signal.addEventListener("abort", cancel, { once: true });
    try {
      return await this.connection.exchange(send, this.#deadlineMs);
    } finally {
      for (const signal of signals) signal.removeEventListener("abort", cancel);
      clearTimeout(again);
      await Promise.all(cancelling); // or the request could end the next statement of this connection
    }
  }

  /**
   * Sends a whole transaction without waiting between its statements, and gives the rows of each. Needs a connection in
   * pipeline mode.
   * @throws the error of the first statement that the server refused, after the rollback; ConnectionLostError when the
   * connection was lost, and then the outcome is unknown.
   */
  transact(begin: string, statements: readonly CompiledStatement[]): Promise<Rows<object[]>[]> {
    this.#requireFree();
    const result = this.#last.then(() => this.#sendAll(begin, statements));
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #sendAll(begin: string, statements: readonly CompiledStatement[]): Promise<Rows<object[]>[]> {
    const { connection } = this;
    let refusal: Error | null = null;
    const send = async ({ text, values }: CompiledStatement, isPrepared = false) => {
      const name = isPrepared ? this.#names?.of(text) : undefined;
      try {
        return await connection.query<object>({ text, values, ...(name !== undefined && { name }) });
      } catch (error) {
        refusal ??= asError(error);
        throw error;
      }
    };
    try {
      return await connection.exchange(async () => {
        const sent = connection.inOneWrite(() => [
          send({ text: begin, values: [] }),
          ...statements.map((statement) => send(statement, true)),
          send({ text: "commit", values: [] }),
        ]);
        // all responses are waited for: after an error they are refusals, up to that of COMMIT, which rolls back
        await Promise.allSettled(sent);
        if (refusal !== null) {
          // an error of COMMIT arrives before the server states that the transaction has ended
          if (connection.getTransactionStatus() !== "I") await once(connection, "drain");
          throw refusal;
        }
        const results = await Promise.all(sent);
        const ended = results.at(-1)?.command;
        if (ended !== "COMMIT") throw new Error(`expected a COMMIT, found a ${ended}`);
        return results.slice(1, -1).map(rowsOf);
      }, this.#deadlineMs);
    } catch (error) {
      // a server that ends the connection states why first, and has then not committed
      throw (refusal as Error | null) instanceof pg.DatabaseError ? refusal : error;
    }
  }

  /** Reads the rows of a statement some at a time. */
  async *read(
    { text, values }: CompiledStatement,
    rowsAtOnce: number,
    signals: readonly AbortSignal[],
  ): AsyncGenerator<object[]> {
    await this.#last;
    this.#requireFree();
    this.#isStreaming = true;
    const cursor = this.connection.query(new Cursor<object>(text, values, { types: rowTypes }));
    let isOpen = true;
    try {
      for (;;) {
        const rows = await this.#exchange(() => cursor.read(rowsAtOnce), signals);
        if (rows.length === 0) return;
        yield rows;
        if (rows.length < rowsAtOnce) return;
      }
    } catch (error) {
      isOpen = !(error instanceof pg.DatabaseError); // an error of the server has closed it
      throw error;
    } finally {
      this.#isStreaming = false;
      if (isOpen && !this.connection.isLost) {
        await this.connection.exchange(() => cursor.close(), this.#deadlineMs);
      }
    }
  }

  /** Starts a COPY to the server. */
  copyFrom(text: string, onEnd: () => void = () => undefined): Writable {
    this.#requireFree();
    return this.#watch(this.connection.query(copyFrom(text)), onEnd);
  }

  /** Starts a COPY from the server. One that is not read to its end costs the connection. */
  copyTo(text: string, onEnd: () => void = () => undefined): Readable {
    this.#requireFree();
    const stream = this.connection.query(copyTo(text));
    let isRefused = false;
    const end = (error?: Error) => {
      isRefused ||= error instanceof pg.DatabaseError; // then the connection is free, and others may use it by now
      if (isRefused || stream.readableEnded) return;
      this.connection.destroy(new ConnectionLostError("a COPY was not read to its end"));
    };
    stream.once("error", end).once("close", end);
    return this.#watch(stream, onEnd);
  }

  /** Watches a COPY until it ends in any way; `onEnd` is called once, when the connection is free again or lost. */
  #watch<Stream extends Readable | Writable>(stream: Stream, onEnd: () => void): Stream {
    this.#isStreaming = true;
    let moved = this.connection.bytesMoved;
    let movedAt = performance.now();
    const watch = setInterval(() => {
      const now = this.connection.bytesMoved;
      // a reader that is not asked for more, or a writer that is given nothing, waits for us and not for the server
      const waitsForUs =
        "readableLength" in stream ? stream.readableLength > 0 : stream.writableLength === 0 && !stream.writableEnded;
      if (now !== moved || waitsForUs) movedAt = performance.now();
      if (now !== moved) this.connection.lastResponseAt = performance.now();
      moved = now;
      if (performance.now() - movedAt < this.#deadlineMs) return;
      this.connection.destroy(
        new ConnectionLostError(`a COPY made no progress for ${this.#deadlineMs} ms`, { isSilent: true }),
      );
    }, LOOK_MS);
    let isOver = false;
    const end = () => {
      if (isOver) return;
      isOver = true;
      clearInterval(watch);
      this.#isStreaming = false;
      onEnd();
    };
    stream.once("close", end).on("error", (error) => {
      if (isConnectionClosing(error)) this.connection.destroy(error);
      end();
      // the library emits the server's error and leaves the stream open: who uses it later would wait forever
      // oxlint-disable-next-line no-underscore-dangle
      stream._destroy = (reason, done) => done(reason);
      stream.destroy(error);
    });
    return stream;
  }

  #requireFree(): void {
    if (this.#isClosed) throw new Error("expected an open transaction: this one has ended");
    this.#requireNoStream();
  }

  #requireNoStream(): void {
    if (this.#isStreaming)
      throw new Error("expected the cursor or COPY of this transaction to be read to its end first");
  }
}

function rowsOf(result: pg.QueryResult<object> | undefined): Rows<object[]> {
  const rows = result?.rows ?? [];
  return Object.defineProperty(rows, "count", { value: result?.rowCount ?? rows.length }) as Rows<object[]>;
}
