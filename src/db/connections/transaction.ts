import { asError } from "../../errors.ts";
import type { Queryable, Transaction } from "../client.ts";
import { type Executor, Query, type Rows, type StatementKind } from "../query.ts";
import type { Session } from "./session.ts";
import { type CompiledStatement, Identifier, Json, type JsonValue, type Template, type Value } from "../statement.ts";

/** What runs in a transaction. */
export type Work<Result> = (tx: Transaction) => Result | Promise<Result>;

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

/**
 * Runs `work` between `begin` and a commit; rolls back when it or one of its statements failed.
 * @throws what failed; the driver's error when the commit fails
 */
export async function inTransaction<Result>(
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

/** The functions that write statements for `executor`; `signals` end those that run. */
export function queryable(executor: Executor, signals: readonly AbortSignal[]): Queryable {
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
