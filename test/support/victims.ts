import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { connect, type Sql } from "../../src/db/client.ts";
import { eventually } from "./eventually.ts";

const LOCK = 424_243;

/** A process that stops in the middle of a task. */
export interface Victim {
  /** Sends it its work, waits until it stops at its statement, kills it (SIGKILL), and waits until the database noticed. */
  killIn(work: object): Promise<void>;
}

/**
 * Processes that each stop at one statement: `PHASE: update on TABLE`, or `PHASE: commit of TABLE`, which stops the commit
 * of a transaction that inserted there. The script gets the database's URL and the name of its connection, prints
 * "ready", and then runs what it is sent.
 */
export async function makeVictims(
  { sql, databaseUrl }: { sql: Sql; databaseUrl: string },
  script: string,
  names: readonly string[],
): Promise<Map<string, Victim>> {
  await sql.unsafe(`
    create function stop_here() returns trigger language plpgsql as $$
    begin
      if split_part(current_setting('application_name'), ': ', 2) = tg_argv[0] then
        perform pg_advisory_xact_lock(${LOCK});
      end if;
      return coalesce(new, old);
    end
    $$`);
  for (const statement of new Set(names.map((name) => name.split(": ")[1] ?? ""))) {
    const [event = "", , table = ""] = statement.split(" ");
    const name = `a_stop_at_${event}_of_${table}`;
    await sql.unsafe(
      event === "commit"
        ? `create constraint trigger ${name} after insert on ${table} deferrable initially deferred
             for each row execute function stop_here('${statement}')`
        : `create trigger ${name} before ${event} on ${table} for each row execute function stop_here('${statement}')`,
    );
  }
  const made = await Promise.all(
    names.map(async (name) => {
      const child = fork(script, [databaseUrl, name], { stdio: "inherit", serialization: "advanced" });
      await once(child, "message");
      return [name, { killIn: (work: object) => killIn(child, name, work) }] as const;
    }),
  );
  return new Map(made);

  async function killIn(child: ChildProcess, name: string, work: object): Promise<void> {
    const held = connect(databaseUrl, { name: "holder", max: 1 });
    try {
      await held`select pg_advisory_lock(${LOCK})`;
      let early: unknown;
      child.once("message", (message) => (early = message));
      child.send(work);
      await eventually(async () => {
        if (early !== undefined) throw new Error(`${name} was not reached: ${JSON.stringify(early)}`);
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
      await held.end();
    }
    await eventually(async () => {
      const left = await sql`
        select from pg_stat_activity
        where datname = current_database() and application_name = ${`roundhouse ${name}`}`;
      return left.length === 0;
    });
  }
}
