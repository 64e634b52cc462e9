import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { z } from "zod";
import { freePort } from "../../src/embedded/ports.ts";
import { makeFolder } from "../cli/world.ts";
import { createDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openCookieClient } from "../support/cookie-client.ts";
import { startProxy } from "./haproxy.ts";
import { startNameServer } from "./name-server.ts";
import { callAll, expectCounted, makeKey, must, startPart, using } from "./world.ts";

const ACCOUNT = "ann@example.com";
const FIRST = "127.0.0.2";
const SECOND = "127.0.0.3";
const CALLS = 40;

const made = z.looseObject({ email: z.string(), password: z.string() });

describe("the proxy of docker-compose.yml", () => {
  it("finds every API by one name and continues without a stopped one; addresses and sign-ins pass through", async () => {
    const [database, names, folder] = [await createDatabase(), await startNameServer("api"), await makeFolder()];
    onTestFinished(async () => {
      names.close();
      await database.drop();
    });
    const port = String(await freePort());
    const proxy = await startProxy({ RESOLVER: `127.0.0.1:${names.port}`, API_PORT: port });
    const env = {
      DATABASE_URL: database.url,
      REDIS_URL: inject("redisUrl"),
      AUTH_SECRET: "a secret that is the same for all of them",
      TRUSTED_PROXIES: "127.0.0.0/8",
      DATA_DIR: join(folder, "data"), // one for all, as a volume is
      PORT: port,
    };
    const key = await makeKey(env, ACCOUNT, "Max");
    const through = { event: "ready", url: proxy.url, api_key: key, ops_url: "" };
    const nobody = await fetch(`${proxy.url}/api/v1/games`);
    expect([nobody.status, nobody.headers.get("retry-after"), await nobody.json()]).toMatchObject([
      503,
      "2",
      { ok: false, error: { code: "temporarily_unavailable" } },
    ]);

    const first = await startPart(["api"], { ...env, HOST: FIRST });
    names.addresses = [FIRST];
    await eventually(async () => (await callAll([through], 1)).get(200) === 1);
    const second = await startPart(["api"], { ...env, HOST: SECOND });
    names.addresses = [FIRST, SECOND];
    // Server api/api2 ('api') is UP/READY (resolves again).
    await eventually(() => /api\/api2\b.* is UP/.test(proxy.log()));
    await using(database.url, (sql) => expectCounted(sql, ACCOUNT, [through], CALLS));

    const { email, password } = made.parse(
      JSON.parse(
        await must(["ops-user", "create", "olga@example.com", "--role", "admin", "--generate", "--json"], env),
      ),
    );
    const olga = openCookieClient(proxy.url, "198.51.100.7");
    expect((await olga.post("/ops/sign-in", { email, password })).status).toBe(303);
    for (let n = 0; n < 6; n++) expect((await olga.get("/ops/")).status).toBe(200);
    const addresses = await using(database.url, async (sql) => {
      const rows = await sql<{ address: string }[]>`select distinct address from audit_log where address is not null`;
      return rows.map(({ address }) => address);
    });
    expect(addresses).toEqual(["198.51.100.7"]);

    // killed in the middle of calls: those it had go to the other one
    const calling = callAll([through], CALLS);
    first.process.kill("SIGKILL");
    expect(await calling).toEqual(new Map([[200, CALLS]]));
    second.process.kill("SIGTERM");
    expect(await second.process.ended).toMatchObject({ code: 0 });
    await eventually(async () => (await callAll([through], 1)).get(503) === 1);
  }, 300_000);
});
