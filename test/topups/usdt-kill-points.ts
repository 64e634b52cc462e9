import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { connect } from "../../src/db/client.ts";
import { eventually } from "../support/eventually.ts";
import type { UsdtWorld } from "./usdt-world.ts";

const LOCK = 848_484;

/** A process that is going to take a turn of the watcher, and to stop in the middle of it. */
export interface Victim {
  /** Begins its turn, waits until it stops at its statement, kills it (SIGKILL), and waits until the database has noticed. */
  killInTurn(): Promise<void>;
}

/**
 * Makes turns of some processes stop, each at one statement: `insert on topups` before the row is written, `credit of …`
 * when the deposit is marked as credited.
 */
export async function makeVictims(
  { sql, databaseUrl, variables }: UsdtWorld,
  statements: readonly string[],
): Promise<Map<string, Victim>> {
  await sql.unsafe(`
    create function stop_here() returns trigger language plpgsql as $$
    begin
      if current_setting('application_name') = 'roundhouse ' || tg_argv[0] then
        perform pg_advisory_xact_lock(${LOCK});
      end if;
      return new;
    end
    $$`);
  for (const statement of statements) {
    const [event = "", , table = ""] = statement.split(" ");
    const condition = event === "credit" ? "when (new.state = 'credited')" : "";
    await sql.unsafe(`
      create trigger stop_at_${event} before ${event === "credit" ? "update" : event} on ${table}
        for each row ${condition} execute function stop_here('${statement}')`);
  }
  const script = path.join(import.meta.dirname, "usdt-process.ts");
  const env = { ...process.env, ...variables };
  const victims = await Promise.all(
    statements.map(async (statement) => {
      const child = fork(script, [databaseUrl, statement], { stdio: "inherit", serialization: "advanced", env });
      await once(child, "message");
      return [statement, { killInTurn: () => killInTurn(child, statement) }] as const;
    }),
  );

  async function killInTurn(child: ChildProcess, statement: string): Promise<void> {
    const held = connect(databaseUrl, { name: "holder", max: 1 });
    try {
      await held`select pg_advisory_lock(${LOCK})`;
      let early: unknown;
      child.once("message", (message) => (early = message));
      child.send("go");
      await eventually(async () => {
        if (early !== undefined) throw new Error(`${statement} was not reached: ${JSON.stringify(early)}`);
        const waiting = await sql`
          select from pg_locks
          where locktype = 'advisory' and objid = ${LOCK} and not granted`;
        return waiting.length > 0;
      });
    } finally {
      const died = once(child, "exit");
      child.kill("SIGKILL");
      await died;
      await held`select pg_advisory_unlock(${LOCK})`;
      await held.end();
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
