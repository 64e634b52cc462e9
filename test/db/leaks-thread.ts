/** Counts what connections leave, in a heap of its own: in a worker of the suite one count takes two seconds. */
import { queryObjects } from "node:v8";
import pg from "pg";
import pino from "pino";
import { connect } from "../../src/db/client.ts";
import { listen } from "../../src/db/connections/listener.ts";
import { runTasks } from "../../src/thread.ts";

/** What the connections to a database do. */
export interface LeaksTask {
  databaseUrl: string;
  what: "statements" | "lost listeners";
}

/** Promises that 500 statements leave. */
async function afterStatements(databaseUrl: string): Promise<number> {
  const sql = connect(databaseUrl, { name: "test", max: 1, use: "request" });
  try {
    await sql`select 1`;
    const before = queryObjects(Promise, { format: "count" });
    for (let n = 0; n < 500; n++) await sql`select 1`;
    return queryObjects(Promise, { format: "count" }) - before;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Clients that a listener leaves whose connection is lost three times. It must receive a notification on each. */
async function afterLostListeners(databaseUrl: string): Promise<number> {
  const sql = connect(databaseUrl, { name: "test", max: 1 });
  const before = queryObjects(pg.Client, { format: "count" });
  let [joined, notified] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
  const listener = listen(
    databaseUrl,
    { channels: ["news"], notified: (channel) => notified.resolve(channel), joined: () => joined.resolve() },
    pino({ level: "silent" }),
  );
  try {
    for (let lost = 0; lost < 3; lost++) {
      await joined.promise;
      notified = Promise.withResolvers<string>();
      await sql`notify news`;
      await notified.promise;
      joined = Promise.withResolvers<void>();
      await sql`
        select pg_terminate_backend(pid)
        from pg_stat_activity
        where application_name = 'roundhouse listener'
          and datname = current_database()`;
    }
    await joined.promise;
    return queryObjects(pg.Client, { format: "count" }) - before;
  } finally {
    await listener.close();
    await sql.end({ timeout: 5 });
  }
}

runTasks(({ databaseUrl, what }: LeaksTask) =>
  what === "statements" ? afterStatements(databaseUrl) : afterLostListeners(databaseUrl),
);
