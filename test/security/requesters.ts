import pino from "pino";
import { insertOperator } from "../../src/accounts/operators/operator-store.ts";
import type { OperatorRole } from "../../src/accounts/operators/roles.ts";
import { hashForTests } from "../support/password-hash.ts";
import { suspendAccount } from "../../src/callers/account-store.ts";
import { ROLES } from "../../src/db/roles/role-grants.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { withRole } from "../../src/db/roles/take-role.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { notifySurface } from "../../src/console/top-up/notify.ts";
import { startOps } from "../../src/ops/start.ts";
import { ENDPOINTS } from "../../src/serve/server.ts";
import { startHealthServer } from "../../src/http/health-server.ts";
import { CHECKS, FAST, makeKey } from "../api/world.ts";
import { SECRET } from "../console/mails.ts";
import { EVERY_METHOD } from "../console/samples.ts";
import { type ConsoleWorld, countFromFar, type Holding, openConsoleWorld, PASSWORD } from "../console/world.ts";
import { houseEntry } from "../support/houses.ts";
import { openCookieClient, type CookieClient } from "../support/cookie-client.ts";
import { REQUESTERS, type Requester } from "./authorization.ts";

/** Every server with routes, on one database, and a way to send requests as each requester. */
export interface ServersWorld extends ConsoleWorld {
  workerUrl: string;
  /** Sends a request with an empty form, each from another address. */
  send(as: Requester, method: string, path: string, options?: { to?: string; form?: object }): Promise<Response>;
}

interface Credentials {
  headers: Record<string, string>;
  /** Signs in again; absent for requesters without a session. */
  renew?: () => Promise<Record<string, string>>;
}

/** Starts them: the API with site, console and ops as `roundhouse api` does, and the server of a worker. */
export async function openServers(): Promise<ServersWorld> {
  const closing: (() => Promise<unknown>)[] = [];
  const world = await openConsoleWorld({
    isDemo: true,
    variables: { ...EVERY_METHOD, METRICS_TOKEN: "a token of a scraper", OPS_REQUIRE_TWO_FACTOR: "1" },
    async before(sql) {
      await applyHouses(sql, [houseEntry()]);
      await countFromFar(sql);
    },
    others({ databaseUrl, settings, log }) {
      const directUrl = withRole(databaseUrl, ROLES.ops);
      const sql = connect(directUrl, { name: "ops", max: 4 });
      const ops = startOps({
        parts: { sql, queues: null, liveWindowSeconds: 300, settings, log },
        directUrl,
        secret: SECRET,
        settings,
        printLink: () => Promise.resolve(),
      });
      closing.push(ops.close, () => sql.end({ timeout: 1 }));
      const metrics = createMetrics({ sql, queues: () => null }, { version: "1.2.3", endpoints: ENDPOINTS, log });
      return { metrics, surfaces: [ops, notifySurface({ sql, settings, log })] };
    },
  });
  const log = pino({ level: "silent" });
  const metrics = createMetrics({ sql: world.sql, queues: () => null }, { version: "1.2.3", endpoints: [], log });
  const settings = { ...world.settings, WORKER_PORT: 0 };
  const worker = await startHealthServer({ settings, version: "1.2.3", checks: CHECKS, metrics, log });
  const known = await listCredentials(world);
  let addresses = 0;
  return {
    ...world,
    workerUrl: worker.url,
    async send(as, method, path, { to = world.url, form = {} } = {}) {
      addresses += 1;
      const { headers } = known[as];
      const isForm = !["GET", "HEAD", "OPTIONS"].includes(method);
      const response = await fetch(to + path, {
        method,
        redirect: "manual",
        headers: {
          ...headers,
          "accept-encoding": "identity", // compression would take a quarter of the time
          "x-forwarded-for": `10.${(addresses >> 16) % 256}.${(addresses >> 8) % 256}.${addresses % 256}`,
          ...(isForm && { "sec-fetch-site": "same-origin" }),
        },
        ...(isForm && { body: new URLSearchParams(form as Record<string, string>) }),
      });
      if (path.endsWith("/sign-out")) known[as].headers = (await known[as].renew?.()) ?? headers;
      return response;
    },
    async close() {
      await worker.close();
      await world.close();
      for (const close of closing) await close();
    },
  };
}

/** Lets the sign-ins of a person count as recent for an hour longer, however long a test takes. */
export async function keepFresh(sql: Sql, email: string): Promise<void> {
  await sql`
    update auth.sessions
    set created_at = clock_timestamp() + interval '1 hour'
    where user_id = (select id from auth.users where email = ${email})`;
}

/** Makes the people and the keys, each with its own session or account. */
async function listCredentials(world: ConsoleWorld): Promise<Record<Requester, Credentials>> {
  const { sql } = world;
  await sql`update plans set burst_per_second = ${FAST}, burst = ${FAST}`;
  const passwordHash = await hashForTests(PASSWORD);
  const cookieOf = ({ cookies }: CookieClient) => ({ cookie: [...cookies].map((pair) => pair.join("=")).join("; ") });

  async function keyOf(name: string): Promise<Credentials> {
    return { headers: { "x-api-key": await makeKey(sql, `${name}@example.com`, "Pro") } };
  }
  /** @param change changes the session or the account after each sign-in, @param prepare undoes it before the next */
  async function session(
    base: string,
    email: string,
    change: () => Promise<unknown>,
    prepare: () => Promise<unknown> = nothing,
  ): Promise<Credentials> {
    async function renew() {
      await prepare();
      await sql`update auth.users set two_factor_enabled = false where email = ${email}`;
      const client = openCookieClient(world.url, `192.0.2.${Math.floor(Math.random() * 250)}`);
      const { status } = await client.post(`${base}/sign-in`, { email, password: PASSWORD });
      if (status !== 303) throw new Error(`signing in ${email} returned ${status}`);
      await keepFresh(sql, email);
      await change();
      return cookieOf(client);
    }
    return { headers: await renew(), renew };
  }
  const enroll = async (email: string) => {
    await sql`update auth.users set two_factor_enabled = true where email = ${email}`;
  };
  const age = (email: string) => sql`
    update auth.sessions
    set created_at = clock_timestamp() - interval '11 minutes'
    where user_id = (select id from auth.users where email = ${email})`;
  const nothing = () => Promise.resolve();

  async function caller(name: string, change: (holding: Holding) => Promise<unknown> = nothing): Promise<Credentials> {
    const holding = await world.makeHolder(`${name}@example.com`);
    await world.giveMoney(holding.accountId, 1_000_000n);
    return session("/console", holding.email, () => change(holding));
  }
  async function staff(name: string, role: OperatorRole, change: (email: string) => Promise<unknown> = enroll) {
    const email = `${name}@example.com`;
    await sql.begin((tx) => insertOperator(tx, { email, role, passwordHash, by: "test" }));
    return session("/ops", email, () => change(email));
  }
  const old = async (email: string) => {
    await enroll(email);
    await age(email);
  };
  const made: Record<Requester, () => Promise<Credentials>> = {
    anonymous: () => Promise.resolve({ headers: {} }),
    key: () => keyOf("key"),
    "exhausted key": async () => {
      const key = await keyOf("exhausted");
      await sql`
        insert into quotas (account_id, period, used)
        select a.id, to_char((now() at time zone 'UTC') + d * interval '1 day', 'YYYY-MM-DD'), 1000000000
        from accounts a, generate_series(0, 1) d
        where a.email = 'exhausted@example.com'`;
      return key;
    },
    "revoked key": async () => {
      const key = await keyOf("revoked");
      await sql`
        update keys
        set revoked_at = now()
        where account_id = (select id from accounts where email = 'revoked@example.com')`;
      return key;
    },
    caller: () => caller("caller"),
    "suspended caller": () =>
      caller("suspended", ({ accountId }) =>
        sql.begin((tx) => suspendAccount(tx, accountId, { by: "test", reason: "a test" })),
      ),
    "caller, old sign-in": () => caller("old-caller", ({ email }) => old(email)),
    "person without account": async () => {
      const { email, accountId, userId } = await world.makeHolder("none@example.com");
      const holds = (holder: string | null) => sql`update accounts set user_id = ${holder} where id = ${accountId}`;
      return session(
        "/console",
        email,
        () => holds(null),
        () => holds(userId),
      );
    },
    viewer: () => staff("viewer", "viewer"),
    operator: () => staff("operator", "operator"),
    data: () => staff("data", "data"),
    admin: () => staff("admin", "admin"),
    "admin, old sign-in": () => staff("old-admin", "admin", old),
    "admin without second factor": () => staff("bare-admin", "admin", nothing),
  };
  const listed: [Requester, Credentials][] = [];
  for (const name of REQUESTERS) listed.push([name, await made[name]()]);
  return Object.fromEntries(listed) as Record<Requester, Credentials>;
}
