import type { Readable, Writable } from "node:stream";
import pg from "pg";
import { compileStatement, type CompiledStatement, Fragment, type Template } from "./statement.ts";

/** The rows of a statement; `count` is how many rows it returned or, when it returns none, how many it changed. */
export type Rows<Row extends readonly unknown[]> = Row & { readonly count: number };

/** Whether a statement is prepared once per connection, or sent as it is (then it may hold several statements). */
export type StatementKind = "prepared" | "direct";

/** What runs statements: a pool, or the one connection of a transaction. */
export interface Executor {
  run(statement: CompiledStatement, kind: StatementKind, signals: readonly AbortSignal[]): Promise<Rows<object[]>>;
  read(statement: CompiledStatement, rowsAtOnce: number, signals: readonly AbortSignal[]): AsyncIterable<object[]>;
  copyFrom(text: string): Promise<Writable>;
  copyTo(text: string): Promise<Readable>;
}

/**
 * A statement that is sent when someone waits for it, and not before: until then it may be a fragment of another one.
 * It is sent once, however often it is waited for.
 */
export class Query<Row extends readonly unknown[]> extends Fragment implements Promise<Rows<Row>> {
  readonly template: Template;
  readonly #executor: Executor;
  readonly #kind: StatementKind;
  readonly #signals: readonly AbortSignal[];
  #result: Promise<Rows<Row>> | null = null;

  constructor(executor: Executor, template: Template, kind: StatementKind, signals: readonly AbortSignal[]) {
    super();
    this.#signals = signals;
    this.#executor = executor;
    this.template = template;
    this.#kind = kind;
  }

  get [Symbol.toStringTag](): string {
    return "Query";
  }

  #send(): Promise<Rows<Row>> {
    this.#result ??= this.#run();
    return this.#result;
  }

  async #run(): Promise<Rows<Row>> {
    const statement = compileStatement(this.template);
    const rows: unknown = await this.#executor.run(statement, this.#kind, this.#signals).catch((error: unknown) => {
      // the stack ends here, since a statement is sent when it is awaited; its text shows the origin
      if (error instanceof pg.DatabaseError) error.stack += `\n    in the statement: ${statement.text.trim()}`;
      throw error;
    });
    return rows as Rows<Row>; // the statement's author states the type; its columns are unknown here
  }

  // a statement is waited for like a promise, and must not be sent before
  // oxlint-disable-next-line unicorn/no-thenable
  then<Done = Rows<Row>, Failed = never>(
    onDone?: ((rows: Rows<Row>) => Done | PromiseLike<Done>) | null,
    onFailed?: ((error: unknown) => Failed | PromiseLike<Failed>) | null,
  ): Promise<Done | Failed> {
    return this.#send().then(onDone, onFailed);
  }

  catch<Failed = never>(
    onFailed?: ((error: unknown) => Failed | PromiseLike<Failed>) | null,
  ): Promise<Rows<Row> | Failed> {
    return this.#send().catch(onFailed);
  }

  finally(onEnd?: (() => void) | null): Promise<Rows<Row>> {
    return this.#send().finally(onEnd);
  }

  /**
   * Reads the rows some at a time. It holds its connection until it is read to the end or left: inside a transaction no
   * other statement can run meanwhile.
   */
  cursor(rowsAtOnce: number): AsyncIterable<Row> {
    return this.#executor.read(
      compileStatement(this.template),
      rowsAtOnce,
      this.#signals,
    ) as AsyncIterable<unknown> as AsyncIterable<Row>;
  }

  /** Starts `copy … from stdin` and gives the stream that fills it; it finishes when the server has stored every row. */
  writable(): Promise<Writable> {
    return this.#executor.copyFrom(compileStatement(this.template).text);
  }

  /** Starts `copy … to stdout` and gives its rows. */
  readable(): Promise<Readable> {
    return this.#executor.copyTo(compileStatement(this.template).text);
  }
}
