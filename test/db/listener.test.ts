import { queryObjects } from "node:v8";
import pg from "pg";
import pino from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import { connect } from "../../src/db/client.ts";
import { listen } from "../../src/db/listener.ts";
import { createDatabase } from "../support/database.ts";

test("a lost connection is closed, and notifications on the next one are received", async () => {
  const database = await createDatabase();
  const sql = connect(database.url, { name: "test", max: 1 });
  const before = queryObjects(pg.Client, { format: "count" });
  let [joined, heard] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
  const listener = listen(
    database.url,
    { channels: ["news"], heard: (channel) => heard.resolve(channel), joined: () => joined.resolve() },
    pino({ level: "silent" }),
  );
  onTestFinished(async () => {
    await listener.close();
    await sql.end({ timeout: 5 });
    await database.drop();
  });
  for (let lost = 0; lost < 3; lost++) {
    await joined.promise;
    heard = Promise.withResolvers<string>();
    await sql`notify news`;
    expect(await heard.promise).toBe("news");
    joined = Promise.withResolvers<void>();
    await sql`
      select pg_terminate_backend(pid)
      from pg_stat_activity
      where application_name = 'roundhouse listener'
        and datname = current_database()`;
  }
  await joined.promise;
  // the one that listens, and one that may be saying farewell
  expect(queryObjects(pg.Client, { format: "count" }) - before).toBeLessThanOrEqual(2);
});

test("a listener that is closed while it connects joins nothing", async () => {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const joined = vi.fn<() => void>();
  const hearing = { channels: ["news"], heard: vi.fn<() => void>(), joined };
  await listen(database.url, hearing, pino({ level: "silent" })).close();
  expect(joined).not.toHaveBeenCalled();
});
