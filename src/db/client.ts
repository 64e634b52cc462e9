import type { Identifier, Json, JsonValue, Value } from "./statement.ts";
import { Pool } from "./connections/pool.ts";
import type { Query, Rows } from "./query.ts";
import type { Use } from "./connections/uses.ts";

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
 * Opens a pool. Connections are made when first needed, so a wrong URL shows at the first statement.
 *
 * Through a transaction pooler (`pooled`) statements are not prepared by name, because the next one may run on another
 * server connection, and the server's own limits are the pooler's to set; the client's deadlines hold all the same.
 * `isSteady` is for programs that run the same few statements all day; see `STEADY` in uses.ts.
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
 * planned as with `isSteady`.
 */
export function openPipeline(url: string, options: { max?: number; name: string; pooled?: boolean }): Pipeline {
  return new Pool(url, { ...options, use: "pass", isSteady: true, isPipelined: true }).pipeline;
}
