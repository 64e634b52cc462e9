import pg from "pg";
import { Connection } from "./connection.ts";
import { ConnectionLostError, isStalePlan } from "./errors.ts";
import { asError } from "../errors.ts";
import { type Executor, Query, type Rows, type StatementKind } from "./query.ts";
import { createStatementNames, Session } from "./session.ts";
import {
  compileStatement,
  type CompiledStatement,
  Identifier,
  Json,
  type JsonValue,
  type Template,
  type Value,
} from "./statement.ts";
import { roleOption } from "./roles/take-role.ts";

/** A row whose columns no one declared. */
// oxlint-disable-next-line typescript/no-explicit-any
type AnyRow = Record<string, any>;

/** Runs statements written as templates: every value in one is bound, never part of its text. */
export interface Queryable {
  <Row extends readonly unknown[] = AnyRow[]>(strings: TemplateStringsArray, ...values: readonly Value[]): Query<Row>;
  /** A name, or several with commas between, as an identifier in a statement. */
  (names: string | readonly string[]): Identifier;
  /** A value to bind as jsonb. */
  json(value: JsonValue): Json;
  /** A statement, or several, given as text: the text must not come from outside. */
  unsafe<Row extends readonly unknown[] = AnyRow[]>(text: string): Query<Row>;
}

/** One open transaction. Its statements run one after another; after its connection is lost each of them is rejected. */
export interface Transaction extends Queryable {
  /**
   * Does something that can be undone alone: when `work` throws, what it did is rolled back and the transaction continues.
   * What else the transaction does meanwhile is rolled back with it, so wait for one savepoint before the next.
   */
  savepoint<Result>(work: (tx: Transaction) => Result | Promise<Result>): Promise<Result>;
}

/** A pool of connections. */
export interface Sql extends Queryable {
  /**
   * Runs `work` in a transaction, on one connection, and commits. When `work` or any of its statements fails, everything is
   * rolled back. `mode` is what may follow BEGIN, such as "read only". A list that `work` gives is waited for as a whole.
   * @throws ConnectionLostError when the connection is lost; during the commit its outcome is unknown.
   */
  begin<Result>(work: (tx: Transaction) => Result | Promise<Result>): Promise<Settled<Result>>;
  begin<Result>(mode: string, work: (tx: Transaction) => Result | Promise<Result>): Promise<Settled<Result>>;
  /**
   * The same connections for a caller that may leave: when `signal` aborts, the server is asked to end the statements that
   * run, and none is sent after that. A COPY runs until its stream is destroyed.
   */
  until(signal: AbortSignal): Sql;
  /** Closes the pool: waits for what runs, at most `timeout` seconds, then destroys the connections. */
  end(options?: { timeout?: number }): Promise<void>;
}

/** A pool whose transactions are sent whole; see {@link openPipeline}. */
export interface Pipeline extends Queryable {
  /**
   * Runs statements in one transaction, in order, and gives the rows of each. All are sent together, so no value of one
   * can depend on the rows of another. `mode` is what may follow BEGIN, such as "read only".
   * @throws the error of the first statement that the server refused, when everything is rolled back and the connection
   * is free again; ConnectionLostError when the connection was lost, and then the outcome is unknown.
   */
  transact<const Statements extends readonly Query<readonly unknown[]>[]>(
    statements: Statements,
    mode?: string,
  ): Promise<RowsOfEach<Statements>>;
  /** As {@link Sql.end}. */
  end(options?: { timeout?: number }): Promise<void>;
}

type RowsOfEach<Statements extends readonly Query<readonly unknown[]>[]> = {
  -readonly [Key in keyof Statements]: Statements[Key] extends Query<infer Row> ? Rows<Row> : never;
};

type Settled<Result> = Result extends readonly unknown[] ? { [Key in keyof Result]: Awaited<Result[Key]> } : Result;

/**
 * What a pool is for. Each use has its own deadlines, so that one use cannot delay another.
 *
 * The server ends a statement after `statementMs`, and the client destroys the connection `GRACE_MS` later, because a
 * connection that went silent brings no error. `transactionMs` bounds a transaction from BEGIN to COMMIT, `idleMs` the time
 * in it without a statement (server side: it frees the locks of a client that vanished), `waitMs` the wait for a connection.
 */
const USES = {
  /** Polls, rounds, forecasts, scores, the worker's own heartbeat: polling must resume within 20 s of any fault. */
  work: { statementMs: 8_000, transactionMs: 30_000, idleMs: 8_000, waitMs: 20_000 },
  /** Passes: a transaction that takes longer than its forecasts may take would be refused. */
  pass: { statementMs: 5_000, transactionMs: 5_000, idleMs: 5_000, waitMs: 5_000 },
  /** Counting calls and finding callers: one look-up or a small batch, and a caller waits for a second at most. */
  meter: { statementMs: 3_000, transactionMs: 6_000, idleMs: 3_000, waitMs: 3_000 },
  /** Reads of the API and of pages: a person does not wait for a page longer than ten seconds. */
  request: { statementMs: 10_000, transactionMs: 20_000, idleMs: 10_000, waitMs: 10_000 },
  /** Jobs that sum, replay and clean up, and commands. */
  long: { statementMs: 60_000, transactionMs: 1_800_000, idleMs: 60_000, waitMs: 60_000 },
  /** Filling a table from a large file is one statement. */
  bulk: { statementMs: 21_600_000, transactionMs: 43_200_000, idleMs: 60_000, waitMs: 60_000 },
} as const;

/** What a pool is for; see {@link USES}. */
export type Use = keyof typeof USES;

/** From the server's own limit to the client's: long enough for the server's error to arrive. */
const GRACE_MS = 1_500;
const IDLE_MS = 60_000;

/**
 * Each statement is planned once per connection, with index scans and nested loops. PostgreSQL would otherwise plan look-ups
 * in a table of sixteen partitions again for each value, which takes longer than the look-up (a fifth of its work at
 * 20 rounds/s in 300 tables), and a plan made while a table is new would read all of it later. No bitmap scans: they revisit
 * dead rows, while index scans mark them dead (one met 8,000 forecasts to find 250). Who joins whole tables on such a
 * connection turns these off in its transaction, as the ledger's check does.
 */
const STEADY = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_bitmapscan: "off",
  random_page_cost: "1.1",
};

/**
 * Opens a pool. Connections are made when first needed, so a wrong URL shows at the first statement.
 *
 * Through a transaction pooler (`pooled`) statements are not prepared by name, because the next one may run on another
 * server connection, and the server's own limits are the pooler's to set; the client's deadlines hold all the same.
 * `isSteady` is for programs that run the same few statements all day; see {@link STEADY}.
 */
export function connect(
  url: string,
  options: { max?: number; name: string; use?: Use; pooled?: boolean; isSteady?: boolean },
): Sql {
  return new Pool(url, options).sql;
}

/**
 * Opens a pool in the driver's pipeline mode: a transaction takes about one round trip, and the server ends it after 5 s
 * (before PostgreSQL 17, which cannot, the client destroys the connection). Cursors and COPY are refused. Statements are
 * planned as with {@link STEADY}.
 */
export function openPipeline(url: string, options: { max?: number; name: string; pooled?: boolean }): Pipeline {
  return new Pool(url, { ...options, use: "pass", isSteady: true, isPipelined: true }).pipeline;
}

class Pool implements Executor {
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

type Work<Result> = (tx: Transaction) => Result | Promise<Result>;

/** The part of a transaction, or of a savepoint in it, that remembers whether one of its statements failed. */
class Scope implements Executor {
  readonly #session: Session;
  failure: { error: unknown } | null = null;

  constructor(session: Session) {
    this.#session = session;
  }

  async run(
    statement: CompiledStatement,
    kind: StatementKind,
    signals: readonly AbortSignal[],
  ): Promise<Rows<object[]>> {
    try {
      return await this.#session.run(statement, kind, signals);
    } catch (error) {
      this.note(error);
      throw error;
    }
  }

  async *read(
    statement: CompiledStatement,
    rowsAtOnce: number,
    signals: readonly AbortSignal[],
  ): AsyncGenerator<object[]> {
    try {
      yield* this.#session.read(statement, rowsAtOnce, signals);
    } catch (error) {
      this.note(error);
      throw error;
    }
  }

  async copyFrom(text: string) {
    return this.#session.copyFrom(text).once("error", (error) => this.note(error));
  }

  async copyTo(text: string) {
    return this.#session.copyTo(text).once("error", (error) => this.note(error));
  }

  /** Notes the first failure. */
  note(error: unknown): void {
    this.failure ??= { error };
  }
}

async function inTransaction<Result>(
  session: Session,
  begin: string,
  signals: readonly AbortSignal[],
  work: Work<Result>,
): Promise<Result> {
  await session.run({ text: begin, values: [] }, "direct");
  try {
    const result = await inScope(session, signals, work);
    await session.finish("COMMIT");
    return result;
  } catch (error) {
    // a connection that was lost took its transaction with it
    if (!session.connection.isLost) {
      await session.finish("ROLLBACK").catch(() => session.connection.destroy(asError(error)));
    }
    throw error;
  }
}

let savepoints = 0;

/** Runs `work`, and fails when any of its statements failed, also when `work` did not notice. */
async function inScope<Result>(session: Session, signals: readonly AbortSignal[], work: Work<Result>): Promise<Result> {
  const scope = new Scope(session);
  const savepoint: Transaction["savepoint"] = async (inner) => {
    const name = `p${(savepoints = (savepoints + 1) % 1_000_000)}`;
    const say = (text: string) => session.run({ text, values: [] }, "direct");
    await say(`savepoint ${name}`);
    try {
      const result = await inScope(session, signals, inner);
      await say(`release savepoint ${name}`);
      return result;
    } catch (error) {
      await say(`rollback to savepoint ${name}`).catch((failure: unknown) => scope.note(failure));
      throw error;
    }
  };
  const given = await work(Object.assign(queryable(scope, signals), { savepoint }));
  const result = (Array.isArray(given) ? await Promise.all(given) : given) as Result;
  if (scope.failure !== null) throw scope.failure.error;
  return result;
}

function queryable(executor: Executor, signals: readonly AbortSignal[]): Queryable {
  const query = (template: Template, kind: StatementKind) => new Query(executor, template, kind, signals);
  function sql(first: TemplateStringsArray | string | readonly string[], ...values: readonly Value[]): unknown {
    return isTemplate(first) ? query({ strings: first, values }, "prepared") : new Identifier(first);
  }
  return Object.assign(sql, {
    json: (value: JsonValue) => new Json(value),
    unsafe: (text: string) => query({ strings: [text], values: [] }, "direct"),
  }) as Queryable;
}

function isTemplate(given: TemplateStringsArray | string | readonly string[]): given is TemplateStringsArray {
  return typeof given === "object" && "raw" in given;
}

function asConnection(client: pg.ClientBase): Connection {
  if (client instanceof Connection) return client;
  throw new TypeError("expected a connection of this pool");
}
