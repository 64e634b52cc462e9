import pg from "pg";
import type { connect, Pipeline, Sql } from "../client.ts";
import { Connection } from "./connection.ts";
import { ConnectionLostError, isStalePlan } from "../errors.ts";
import { type Executor, type Query, type Rows, type StatementKind } from "../query.ts";
import { roleOption } from "../roles/take-role.ts";
import { Session } from "./session.ts";
import { createStatementNames } from "./statement-names.ts";
import { compileStatement, type CompiledStatement } from "../statement.ts";
import { inTransaction, queryable, type Work } from "./transaction.ts";
import { STEADY, type Use, USES } from "./uses.ts";

/** From the server's own limit to the client's: long enough for the server's error to arrive. */
const GRACE_MS = 1_500;
const IDLE_MS = 60_000;

/** The connections behind {@link Sql} and {@link Pipeline}: their limits, their loss and their end. */
export class Pool implements Executor {
  readonly sql: Sql;
  readonly #pool: pg.Pool;
  readonly #limits: (typeof USES)[Use];
  readonly #open = new Set<Connection>();
  readonly #names;
  /** Rejects each caller that waits for a connection. */
  readonly #waiting = new Set<(reason: Error) => void>();
  #ending: Promise<void> | null = null;
  /** What a connection runs first, since it cannot be set at the start; null for nothing. */
  readonly #firstStatement: string | null;
  /** Connections that ran it. */
  readonly #ready = new WeakSet<Connection>();

  constructor(
    url: string,
    {
      max = 10,
      name,
      use = "long",
      pooled = false,
      isSteady = false,
      isPipelined = false,
    }: Parameters<typeof connect>[1] & { isPipelined?: boolean },
  ) {
    this.#limits = USES[use];
    // a pooler refuses a time zone at the start, and keeps it with its client; servers before 17 refuse a setting they lack
    this.#firstStatement = pooled
      ? "set timezone to 'UTC'"
      : isPipelined
        ? limitTransactions(this.#limits.transactionMs)
        : null;
    this.#names = pooled ? null : createStatementNames();
    const settings = {
      TimeZone: "UTC",
      statement_timeout: this.#limits.statementMs,
      idle_in_transaction_session_timeout: this.#limits.idleMs,
      ...(isSteady && STEADY),
    };
    const startup = Object.entries(settings).map(([setting, value]) => `-c ${setting}=${value}`);
    this.#pool = new pg.Pool({
      Client: Connection,
      connectionString: url,
      application_name: `roundhouse ${name}`,
      max,
      idleTimeoutMillis: IDLE_MS,
      connectionTimeoutMillis: this.#limits.waitMs,
      allowExitOnIdle: false,
      pipeline: isPipelined,
      ...(!pooled && { options: [...startup, roleOption(url)].join(" ").trim() }), // a pooler refuses `options`
    });
    this.#pool.on("error", () => undefined); // an idle connection that the server ends: the next statement makes another
    this.#pool.on("connect", (client) => this.#open.add(asConnection(client)));
    this.#pool.on("remove", (client) => this.#open.delete(asConnection(client)));
    this.sql = this.#sqlUntil([]);
  }

  get pipeline(): Pipeline {
    return Object.assign(queryable(this, []), {
      transact: this.#transact.bind(this) as Pipeline["transact"],
      end: this.#end.bind(this),
    });
  }

  async #transact(statements: readonly Query<readonly unknown[]>[], mode = ""): Promise<Rows<object[]>[]> {
    const compiled = statements.map(({ template }) => compileStatement(template));
    try {
      return await this.#use((session) => session.transact(`begin ${mode}`, compiled));
    } catch (error) {
      if (isStalePlan(error)) this.#names?.renew();
      throw error;
    }
  }

  #sqlUntil(signals: readonly AbortSignal[]): Sql {
    return Object.assign(queryable(this, signals), {
      begin: ((...given: [Work<unknown>]) => this.#begin(signals, ...given)) as Sql["begin"],
      until: (signal: AbortSignal) => this.#sqlUntil([...signals, signal]),
      end: this.#end.bind(this),
    });
  }

  get #deadlineMs(): number {
    return this.#limits.statementMs + GRACE_MS;
  }

  async run(
    statement: CompiledStatement,
    kind: StatementKind,
    signals: readonly AbortSignal[],
  ): Promise<Rows<object[]>> {
    try {
      return await this.#use((session) => session.run(statement, kind, signals));
    } catch (error) {
      if (!isStalePlan(error)) throw error;
      this.#names?.renew();
      return this.#use((session) => session.run(statement, kind, signals));
    }
  }

  async *read(
    statement: CompiledStatement,
    rowsAtOnce: number,
    signals: readonly AbortSignal[],
  ): AsyncGenerator<object[]> {
    const connection = await this.#acquire();
    try {
      yield* this.#sessionOn(connection).read(statement, rowsAtOnce, signals);
    } finally {
      this.#release(connection);
    }
  }

  async copyFrom(text: string) {
    const connection = await this.#acquire();
    return this.#sessionOn(connection).copyFrom(text, () => this.#release(connection));
  }

  async copyTo(text: string) {
    const connection = await this.#acquire();
    return this.#sessionOn(connection).copyTo(text, () => this.#release(connection));
  }

  #sessionOn(connection: Connection): Session {
    return new Session(connection, this.#names, this.#deadlineMs);
  }

  async #use<Result>(work: (session: Session) => Promise<Result>): Promise<Result> {
    const connection = await this.#acquire();
    try {
      return await work(this.#sessionOn(connection));
    } catch (error) {
      this.#noteSilence(error);
      throw error;
    } finally {
      this.#release(connection);
    }
  }

  /** A connection that is not known to be lost. */
  async #acquire(): Promise<Connection> {
    for (;;) {
      if (this.#ending !== null) throw new ConnectionLostError("the pool of connections is closed");
      const client = await this.#untilClosed(this.#pool.connect());
      const connection = asConnection(client);
      if (connection.isLost) {
        client.release(true);
        continue;
      }
      if (this.#firstStatement !== null && !this.#ready.has(connection)) {
        await this.#makeReady(connection, this.#firstStatement);
      }
      return connection;
    }
  }

  /** Each wait has its own promise: a race against one that lives as long as the pool would stay in memory with it. */
  async #untilClosed(acquired: Promise<pg.PoolClient>): Promise<pg.PoolClient> {
    const closed = Promise.withResolvers<never>();
    this.#waiting.add(closed.reject);
    try {
      return await Promise.race([acquired, closed.promise]);
    } catch (error) {
      void acquired.then(
        (late) => late.release(true),
        () => undefined,
      );
      throw error instanceof pg.DatabaseError
        ? error
        : new ConnectionLostError("no connection to PostgreSQL is available", { cause: error });
    } finally {
      this.#waiting.delete(closed.reject);
    }
  }

  async #makeReady(connection: Connection, statement: string): Promise<void> {
    try {
      await connection.exchange(() => connection.query(statement), this.#deadlineMs);
      this.#ready.add(connection);
    } catch (error) {
      this.#release(connection);
      throw error;
    }
  }

  #release(connection: Connection): void {
    (connection as Connection & pg.PoolClient).release(connection.isLost);
  }

  /**
   * After a connection went silent, all that were last heard before its statement was sent are destroyed, busy ones too:
   * waiting for the deadline of each would add up (polling was back after 22 s, not 15, with Redis silent as well).
   */
  #noteSilence(error: unknown): void {
    if (!(error instanceof ConnectionLostError && error.isSilent)) return;
    const sentAt = performance.now() - this.#deadlineMs;
    for (const connection of this.#open) {
      if (connection.lastResponseAt < sentAt) {
        connection.destroy(new ConnectionLostError("another connection went silent, and this one was heard before it"));
      }
    }
  }

  async #begin<Result>(
    signals: readonly AbortSignal[],
    ...given: [string, Work<Result>] | [Work<Result>]
  ): Promise<Result> {
    const [mode, work] = given.length === 1 ? ["", given[0]] : given;
    const connection = await this.#acquire();
    const { transactionMs } = this.#limits;
    const isLate = Promise.withResolvers<never>();
    const deadline = setTimeout(() => {
      const reason = new ConnectionLostError(`a transaction did not end within ${transactionMs} ms`);
      connection.destroy(reason);
      isLate.reject(reason); // its work may be waiting for something else than the database
    }, transactionMs);
    const session = this.#sessionOn(connection);
    try {
      return await Promise.race([inTransaction(session, `begin ${mode}`, signals, work), isLate.promise]);
    } catch (error) {
      this.#noteSilence(error);
      if (isStalePlan(error)) this.#names?.renew();
      throw error;
    } finally {
      clearTimeout(deadline);
      session.close();
      this.#release(connection);
    }
  }

  #end({ timeout = 5 }: { timeout?: number } = {}): Promise<void> {
    this.#ending ??= this.#close(timeout * 1_000);
    return this.#ending;
  }

  async #close(withinMs: number): Promise<void> {
    const reason = new ConnectionLostError("the pool of connections was closed");
    for (const reject of this.#waiting) reject(reason);
    const destroyAll = () => {
      for (const connection of this.#open) connection.destroy(reason);
    };
    const isLate = Promise.withResolvers<void>();
    // the holder of a connection may be waiting for something other than the database
    const patience = setTimeout(() => (destroyAll(), isLate.resolve()), withinMs);
    await Promise.race([this.#pool.end(), isLate.promise]);
    clearTimeout(patience);
    // a goodbye to a server that no longer reads keeps its socket open
    destroyAll();
  }
}

function limitTransactions(ms: number): string {
  return `select set_config('transaction_timeout', '${ms}', false) where current_setting('server_version_num')::integer >= 170000`;
}

function asConnection(client: pg.ClientBase): Connection {
  if (client instanceof Connection) return client;
  throw new TypeError("expected a connection of this pool");
}
