import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import type { Order, Purchased } from "../../src/purchases/judge.ts";
import { eventually } from "../support/eventually.ts";
import type { PurchaseWorld } from "./world.ts";

const LOCK = 424_242;

/** A process that is going to buy, and to stop in the middle of it. */
export interface Victim {
  /** Sends the order, waits until it stops at its statement, kills it (SIGKILL), and waits until the database has noticed. */
  killIn(order: Order): Promise<void>;
}

/**
 * Makes purchases of some processes stop: each at one statement, such as "insert on purchases", or, as "commit of mails",
 * when its transaction is being committed.
 */
export async function makeVictims(
  { sql, databaseUrl }: PurchaseWorld,
  statements: readonly string[],
): Promise<Map<string, Victim>> {
  await sql.unsafe(`
    create function stop_here() returns trigger language plpgsql as $$
    begin
      if current_setting('application_name') = 'roundhouse ' || tg_argv[0] then
        perform pg_advisory_xact_lock(${LOCK});
      end if;
      return coalesce(new, old);
    end
    $$`);
  for (const statement of statements) {
    const [event = "", , table = ""] = statement.split(" ");
    const name = `stop_at_${event}_of_${table}`;
    await sql.unsafe(
      event === "commit"
        ? `create constraint trigger ${name} after insert on ${table} deferrable initially deferred
             for each row execute function stop_here('${statement}')`
        : `create trigger ${name} before ${event} on ${table} for each row execute function stop_here('${statement}')`,
    );
  }
  const script = path.join(import.meta.dirname, "purchase-process.ts");
  const victims = await Promise.all(
    statements.map(async (statement) => {
      const child = fork(script, [databaseUrl, statement], { stdio: "inherit", serialization: "advanced" });
      await once(child, "message");
      return [statement, { killIn: (order: Order) => killIn(child, statement, order) }] as const;
    }),
  );

  async function killIn(child: ChildProcess, statement: string, order: Order): Promise<void> {
    const held = await sql.reserve();
    try {
      await held`select pg_advisory_lock(${LOCK})`;
      let early: Purchased | undefined;
      child.once("message", (message) => (early = message as Purchased));
      child.send(order);
      await eventually(async () => {
        if (early !== undefined) throw new Error(`${statement} was not reached: ${JSON.stringify(early)}`);
        const waiting = await sql`
          select from pg_locks
          where locktype = 'advisory' and objid = ${LOCK} and not granted`;
        return waiting.length > 0;
      });
      const died = once(child, "exit");
      child.kill("SIGKILL");
      await died;
    } finally {
      await held`select pg_advisory_unlock(${LOCK})`;
      held.release();
    }
    await eventually(async () => {
      const left = await sql`
        select from pg_stat_activity
        where datname = current_database() and application_name = ${`roundhouse ${statement}`}`;
      return left.length === 0;
    });
  }
  return new Map(victims);
}
