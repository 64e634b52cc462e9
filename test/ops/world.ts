import pino from "pino";
import { insertOperator } from "../../src/accounts/operators/operator-store.ts";
import { hashForTests } from "../support/password-hash.ts";
import type { OperatorRole } from "../../src/accounts/operators/roles.ts";
import { startApi, type Api } from "../../src/serve/server.ts";
import { loadSettings, type Settings } from "../../src/config/environment.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { ROLES } from "../../src/db/roles/role-grants.ts";
import { withRole } from "../../src/db/roles/take-role.ts";
import type { OpsParts } from "../../src/ops/contract.ts";
import { startOps, type StartOps } from "../../src/ops/start.ts";
import { CHECKS, PATIENT } from "../api/world.ts";
import { createDatabase } from "../support/database.ts";
import { openCookieClient, type CookieClient } from "../support/cookie-client.ts";

const SECRET = "a secret of a test, 32 characters at least";
/** The password of every operator of a world. */
export const PASSWORD = "five rare green kettles";

export type { CookieClient };

/** A server with `/ops`, on its own database. */
export interface OpsWorld {
  sql: Sql;
  databaseUrl: string;
  api: Api;
  url: string;
  /** Log lines. */
  lines: string[];
  /** Times that a new one-time link was asked for. */
  links: number;
  /** A client that is not signed in. */
  stranger(): CookieClient;
  /** An operator with a role, made where there is none yet, signed in by password: `ROLE@example.com`. */
  as(role: OperatorRole): Promise<CookieClient>;
  /** Makes an operator who signs in with {@link PASSWORD}; gives the id. */
  makeOperator(email: string, role: OperatorRole): Promise<string>;
  /** Signs a new client in. */
  signIn(email: string, password?: string): Promise<{ client: CookieClient; response: Response }>;
  close(): Promise<void>;
}

interface Options {
  settings?: Partial<Settings>;
  requireTwoFactor?: boolean;
  queues?: OpsParts["queues"];
  /** Other pages and actions than those there are. */
  lists?: StartOps["lists"];
  through?: (databaseUrl: string) => Promise<string>;
}

let hashed: Promise<string> | undefined;

export async function openOpsWorld(options: Options = {}): Promise<OpsWorld> {
  const database = await createDatabase();
  const sql = connect(database.url, { name: "test", max: 3 });
  const url = (await options.through?.(database.url)) ?? database.url;
  const [opsUrl, apiUrl] = [withRole(url, ROLES.ops), withRole(url, ROLES.api)];
  const opsSql = connect(opsUrl, { name: "ops", max: 4 });
  const apiSql = connect(apiUrl, { name: "api", max: 2 });
  const lines: string[] = [];
  const log = pino({ level: "debug" }, { write: (line) => void lines.push(line) });
  const settings = {
    HOST: "127.0.0.1",
    PORT: 0,
    PUBLIC_URL: undefined,
    LIVE_WINDOW_SECONDS: 300,
    BUFFER_ROUNDS: 200,
    TRUSTED_PROXIES: ["127.0.0.1"], // so that a test chooses the address it comes from
    METRICS_TOKEN: undefined,
    OPS_REQUIRE_TWO_FACTOR: options.requireTwoFactor === true,
    ...options.settings,
  };
  const world = { links: 0 };
  const parts = {
    sql: opsSql,
    queues: options.queues ?? null,
    liveWindowSeconds: 300,
    settings: { ...loadSettings({}), ...settings },
    log,
  };
  const printLink = () => {
    world.links += 1;
    return Promise.resolve();
  };
  const ops = startOps({
    parts,
    directUrl: opsUrl,
    secret: SECRET,
    settings,
    printLink,
    ...(options.lists && { lists: options.lists }),
  });
  const api = await startApi({
    sql: apiSql,
    directUrl: apiUrl,
    redisUrl: undefined,
    settings,
    log,
    version: "1.2.3",
    checks: CHECKS,
    times: PATIENT,
    secret: SECRET,
    surfaces: [ops],
  });
  let strangers = 0;
  const stranger = () => {
    strangers += 1;
    return openCookieClient(api.url, `198.51.100.${strangers % 250}`);
  };
  const signedIn = new Map<string, CookieClient>();

  async function makeOperator(email: string, role: OperatorRole): Promise<string> {
    hashed ??= hashForTests(PASSWORD);
    const passwordHash = await hashed;
    const made = await sql.begin((tx) => insertOperator(tx, { email, role, passwordHash, by: "test" }));
    if (made === null) throw new Error(`${email} is an operator already`);
    return made.id;
  }
  async function signIn(email: string, password = PASSWORD) {
    const client = stranger();
    client.email = email;
    const response = await client.post("/ops/sign-in", { email, password });
    return { client, response };
  }
  return Object.assign(world, {
    sql,
    databaseUrl: database.url,
    api,
    url: api.url,
    lines,
    stranger,
    makeOperator,
    signIn,
    async as(role: OperatorRole) {
      const known = signedIn.get(role);
      if (known !== undefined) return known;
      const email = `${role}@example.com`;
      await makeOperator(email, role);
      const { client, response } = await signIn(email);
      if (response.status !== 303) throw new Error(`signing in ${email} returned ${response.status}`);
      signedIn.set(role, client);
      return client;
    },
    async close() {
      await api.close();
      await ops.close();
      await opsSql.end({ timeout: 1 });
      await apiSql.end({ timeout: 1 });
      await sql.end();
      await database.drop();
    },
  });
}
