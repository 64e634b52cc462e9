import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { postgres } from "../../src/db/driver.ts";
import { createDatabase } from "../support/database.ts";

let database: Awaited<ReturnType<typeof createDatabase>>;
let other: ReturnType<typeof postgres>;
beforeAll(async () => {
  database = await createDatabase();
  other = postgres(database.url, { max: 1 });
});
afterAll(async () => {
  await other.end();
  await database.drop();
});

const cut = (pid: number) => other`select pg_terminate_backend(${pid}, 5000)`;

describe("the repaired driver", () => {
  // unrepaired it throws where nobody can catch it, which fails the whole run, and the next connection never says a word
  it("refuses a statement on a connection that ended, and its pool goes on", async () => {
    const closed = Promise.withResolvers<void>();
    const sql = postgres(database.url, { max: 1, connect_timeout: 5, onclose: () => closed.resolve() });
    try {
      const reserved = await sql.reserve();
      const [row] = await reserved<{ pid: number }[]>`select pg_backend_pid() as pid`;
      await cut(row?.pid ?? 0);
      await closed.promise;
      await expect(reserved`select 1`).rejects.toThrow("CONNECTION_CLOSED");
      expect(await sql`select 42 as n`).toEqual([{ n: 42 }]);
    } finally {
      await sql.end({ timeout: 1 });
    }
  });

  it("does not blame the first statement on a new connection for the end of the old one", async () => {
    const sql = postgres(database.url, { max: 1 });
    try {
      const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
      const running = sql`select pg_sleep(30)`;
      await Promise.all([
        expect(running).rejects.toThrow(/terminating connection|CONNECTION_CLOSED/),
        cut(row?.pid ?? 0),
      ]);
      expect(await sql`select 42 as n`).toEqual([{ n: 42 }]);
    } finally {
      await sql.end({ timeout: 1 });
    }
  });
});
