import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { inspect } from "node:util";
import { connect, type Sql } from "../../src/db/client.ts";
import { eventually } from "./eventually.ts";

const LOCK = 424_243;

/** A process that stops in the middle of a task. */
export interface Victim {
  /** Sends it its work, waits until its trigger stops it, kills it (SIGKILL), and waits until the database noticed. */
  killIn(work: object): Promise<void>;
}

/**
 * The trigger of a stop: `insert on TABLE`, or `update` or `delete`, stops before the row is written; `commit of TABLE` stops
 * the commit of a transaction that inserted there.
 */
export function stopAt(statement: string): string {
  const [event = "", , table = ""] = statement.split(" ");
  return event === "commit"
    ? `after insert on ${table} deferrable initially deferred for each row`
    : `before ${event} on ${table} for each row`;
}

/**
 * Starts one process per stop, by its name. Each runs `script DATABASE_URL NAME`, connects with this name, sends "ready", and
 * does what it is sent, until its trigger stops it: `before update on TABLE for each row when (CONDITION)`. One that is
 * deferrable stops the commit.
 */
export async function makeVictims(
  { sql, databaseUrl }: { sql: Sql; databaseUrl: string },
  script: string,
  stops: Record<string, string>,
  env: NodeJS.ProcessEnv = {},
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
  for (const [name, trigger] of Object.entries(stops)) {
    const kind = trigger.includes("deferrable") ? "constraint trigger" : "trigger";
    await sql.unsafe(`create ${kind} "a stop to ${name}" ${trigger} execute function stop_here('${name}')`);
  }
  const made = await Promise.all(
    Object.keys(stops).map(async (name) => {
      const child = fork(script, [databaseUrl, name], {
        stdio: "inherit",
        serialization: "advanced",
        env: { ...process.env, ...env },
      });
      const died = once(child, "exit");
      await once(child, "message");
      return [name, { killIn: (work: object) => killIn({ child, died }, name, work) }] as const;
    }),
  );
  return new Map(made);

  async function killIn(
    { child, died }: { child: ChildProcess; died: Promise<unknown> },
    name: string,
    work: object,
  ): Promise<void> {
    const held = connect(databaseUrl, { name: "holder", max: 1 });
    try {
      await held`select pg_advisory_lock(${LOCK})`;
      let early: unknown;
      child.once("message", (message) => (early = message));
      child.send(work);
      await eventually(async () => {
        if (early !== undefined) throw new Error(`${name} was not reached: ${inspect(early)}`);
        const waiting = await sql`
          select
          from pg_locks l
          join pg_database d on d.oid = l.database
          where d.datname = current_database()
            and l.locktype = 'advisory'
            and l.objid = ${LOCK}
            and not l.granted`;
        return waiting.length > 0;
      });
    } finally {
      child.kill("SIGKILL");
      await died;
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
