import { afterAll, beforeAll, expect, it } from "vitest";
import { withPgClient } from "../../src/db/connections/pg-client.ts";
import { openPgPool } from "../../src/db/connections/pg-pool.ts";
import { createDatabase } from "../support/database.ts";
import { openProxy } from "../support/proxy.ts";

let database: Awaited<ReturnType<typeof createDatabase>>;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

it("a library that gives back a silent connection gets another one", async () => {
  const url = new URL(database.url);
  const proxy = await openProxy(() => Number(new URL(database.url).port));
  url.port = String(proxy.port);
  const pool = openPgPool(url.href, { name: "test", schema: "public", max: 1 });
  try {
    const client = await pool.connect();
    await client.query("select 1");
    expect(proxy.silence()).toBe(1);
    await expect(client.query("select 1")).rejects.toThrow("did not respond within");
    client.release();
    expect((await pool.query("select 1 as n")).rows).toEqual([{ n: 1 }]);
  } finally {
    proxy.closeSilenced();
    await pool.end();
    await proxy.close();
  }
});

it("a connection of one's own that went silent is closed in time", async () => {
  const url = new URL(database.url);
  const proxy = await openProxy(() => Number(new URL(database.url).port));
  url.port = String(proxy.port);
  try {
    const result = await withPgClient(url.href, "test", async (client) => {
      await client.query("select 1");
      proxy.silence();
      return "done";
    });
    expect(result).toBe("done");
  } finally {
    proxy.closeSilenced();
    await proxy.close();
  }
});
