import { SECRET } from "./mails.ts";
import { randomUUID } from "node:crypto";
import type { Express } from "express";
import pino from "pino";
import { saveConsent } from "../../src/accounts/holders/consent-store.ts";
import { savePassword } from "../../src/accounts/operators/operator-store.ts";
import { hashForTests } from "../support/password-hash.ts";
import { startApi, type Api, type ApiParts } from "../../src/serve/server.ts";
import { createOwnKey } from "../../src/callers/key-store.ts";
import { loadSettings, type Settings } from "../../src/config/environment.ts";
import { startConsole, type StartConsole } from "../../src/console/start.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import type { Log } from "../../src/log.ts";
import { ROLES } from "../../src/db/roles/role-grants.ts";
import { withRole } from "../../src/db/roles/take-role.ts";
import { CHECKS, PATIENT } from "../api/world.ts";
import { fund } from "../support/fund.ts";
import { createDatabase } from "../support/database.ts";
import { openCookieClient, type CookieClient } from "../support/cookie-client.ts";

/** The password of every holder of a world. */
export const PASSWORD = "five rare green kettles";

/** The holder of an account. */
export interface Holding {
  email: string;
  userId: string;
  accountId: bigint;
}

/** A server with `/console`, on its own database. */
export interface ConsoleWorld {
  sql: Sql;
  databaseUrl: string;
  settings: Settings;
  api: Api;
  url: string;
  /** Log lines. */
  lines: string[];
  /** Every method and path of a route below `/console`: `POST /console/keys`. */
  routes: string[];
  /** A client that is not signed in. */
  stranger(): CookieClient;
  /** The holder `NAME@example.com`, made where there is none yet, signed in by password. */
  as(name: string): Promise<CookieClient & Holding>;
  /** Makes an account whose holder signs in with {@link PASSWORD} and agreed to the terms, unless set otherwise. */
  makeHolder(email: string, options?: { hasAgreed?: boolean }): Promise<Holding>;
  /** Signs a new client in. */
  signIn(email: string, password?: string): Promise<{ client: CookieClient; response: Response }>;
  /** Gives an account money, as a bank transfer that was credited. */
  giveMoney(accountId: bigint, micros: bigint): Promise<void>;
  /** Gives an account a plan for some days from now; a part of a day counts. */
  givePlan(accountId: bigint, plan: string, days: number): Promise<void>;
  /** Gives an account a key. */
  giveKey(accountId: bigint, name: string): Promise<{ id: bigint; key: string }>;
  close(): Promise<void>;
}

interface Options {
  /** Variables of the environment in addition to those of every world. */
  variables?: Record<string, string>;
  /** Fills the database before anything is started on it. */
  before?: (sql: Sql) => Promise<void>;
  /** Whether it is a demo that only its machine reaches. */
  isDemo?: boolean;
  /** Other pages and actions than those there are. */
  lists?: StartConsole["lists"];
  /** What else the server of the console serves. */
  others?: (given: { databaseUrl: string; settings: Settings; log: Log }) => Pick<ApiParts, "surfaces" | "metrics">;
}

let hashed: Promise<string> | undefined;

export async function openConsoleWorld(options: Options = {}): Promise<ConsoleWorld> {
  const database = await createDatabase();
  const sql = connect(database.url, { name: "test", max: 3 });
  await options.before?.(sql);
  const [consoleUrl, apiUrl] = [withRole(database.url, ROLES.console), withRole(database.url, ROLES.api)];
  const consoleSql = connect(consoleUrl, { name: "console", max: 4 });
  const apiSql = connect(apiUrl, { name: "api", max: 2 });
  const lines: string[] = [];
  const log = pino({ level: "debug" }, { write: (line) => void lines.push(line) });
  const settings = loadSettings({
    PORT: "0",
    TRUSTED_PROXIES: "127.0.0.1", // so that a test chooses the address it comes from
    AUTH_SECRET: SECRET,
    ...options.variables,
  });
  const consoleSurface = startConsole({
    parts: { sql: consoleSql, settings, log },
    directUrl: consoleUrl,
    secret: SECRET,
    isDemo: options.isDemo === true,
    ...(options.lists && { lists: options.lists }),
  });
  const routes: string[] = [];
  const others = options.others?.({ databaseUrl: database.url, settings, log }) ?? {};
  const api = await startApi({
    ...others,
    sql: apiSql,
    directUrl: apiUrl,
    redisUrl: undefined,
    settings,
    log,
    version: "1.2.3",
    checks: CHECKS,
    times: PATIENT,
    secret: SECRET,
    surfaces: [
      {
        base: consoleSurface.base,
        listener(shared) {
          const listener = consoleSurface.listener(shared);
          routes.push(...routesOf(listener as Express));
          return listener;
        },
      },
      ...(others.surfaces ?? []),
    ],
  });
  let strangers = 0;
  const stranger = () => {
    strangers += 1;
    return openCookieClient(api.url, `198.51.100.${strangers % 250}`);
  };
  const signedIn = new Map<string, CookieClient & Holding>();

  async function makeHolder(email: string, { hasAgreed = true } = {}): Promise<Holding> {
    hashed ??= hashForTests(PASSWORD);
    const passwordHash = await hashed;
    return sql.begin(async (tx) => {
      const userId = randomUUID();
      await tx`
        insert into auth.users (id, name, email, email_verified, surface)
        values (${userId}, ${email}, ${email}, true, 'console')`;
      await savePassword(tx, userId, passwordHash);
      const [made] = await tx<{ id: bigint }[]>`
        insert into accounts (email, verified_at, user_id)
        values (${email}, now(), ${userId})
        returning id`;
      const accountId = made!.id;
      for (const kind of hasAgreed ? (["terms", "adult"] as const) : []) {
        await saveConsent(tx, { accountId, kind, address: null, userAgent: null });
      }
      return { email, userId, accountId };
    });
  }
  async function signIn(email: string, password = PASSWORD) {
    const client = stranger();
    client.email = email;
    const response = await client.post("/console/sign-in", { email, password });
    return { client, response };
  }
  return {
    sql,
    databaseUrl: database.url,
    settings,
    api,
    url: api.url,
    lines,
    routes,
    stranger,
    makeHolder,
    signIn,
    async as(name) {
      const known = signedIn.get(name);
      if (known !== undefined) return known;
      const email = `${name}@example.com`;
      const holding = await makeHolder(email);
      const { client, response } = await signIn(email);
      if (response.status !== 303) throw new Error(`signing in ${email} returned ${response.status}`);
      const both = Object.assign(client, holding);
      signedIn.set(name, both);
      return both;
    },
    async giveMoney(accountId, micros) {
      await sql.begin((tx) => fund(tx, accountId, micros));
    },
    async givePlan(accountId, plan, days) {
      await sql`
        insert into entitlements (account_id, plan, starts_at, ends_at)
        values (${accountId}, ${plan}, now() - interval '1 day', now() + ${days}::float8 * interval '1 day')`;
    },
    giveKey: (accountId, name) =>
      sql.begin(async (tx) => {
        const made = await createOwnKey(tx, accountId, name);
        if (!made.ok) throw new Error(made.problem);
        return made;
      }),
    async close() {
      await api.close();
      await consoleSurface.close();
      await consoleSql.end({ timeout: 1 });
      await apiSql.end({ timeout: 1 });
      await sql.end();
      await database.drop();
    },
  };
}

/** Makes ids large, so that none of them is in a page by chance. */
export async function countFromFar(sql: Sql): Promise<void> {
  const columns = await sql<{ table: string; column: string }[]>`
    select table_name as table, column_name as column
    from information_schema.columns
    where table_schema = 'public' and is_identity = 'YES' and data_type = 'bigint'`;
  for (const { table, column } of columns) {
    await sql`alter table ${sql(table)} alter column ${sql(column)} restart with 730000001`;
  }
}

/** The routes of an app, by its router. Nested routers would hide their routes, so they fail. */
function routesOf({ router }: Express): string[] {
  return router.stack.flatMap(({ name, route }) => {
    if (name === "router") throw new Error("expected the console to have one router, found one within it");
    if (route === undefined) return [];
    const methods = route.stack.flatMap(({ method }) => (method ? [method.toUpperCase()] : []));
    return [...new Set(methods)].map((method) => `${method} ${route.path}`);
  });
}
