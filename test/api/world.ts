import pino from "pino";
import { expect } from "vitest";
import { z } from "zod";
import type { Checks } from "../../src/http/health.ts";
import { TIMES, type ApiTimes } from "../../src/api/times.ts";
import { startApi, type Api, type ApiParts } from "../../src/serve/server.ts";
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { ROLES } from "../../src/db/roles/role-grants.ts";
import { withRole } from "../../src/db/roles/take-role.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { createDatabase } from "../support/database.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import { conform } from "./conform.ts";

/** Alpha has two tables with consecutive ids, beta (simulated) one with opaque ids, gamma one that is there for plans. */
const HOUSES = [
  houseEntry({ tables: [tableEntry(), tableEntry({ game: "dice", market: "eu" })] }),
  houseEntry({
    id: "beta",
    name: "Beta",
    simulated: true,
    tables: [tableEntry({ round_ids: "opaque", market: "eu" })],
  }),
  houseEntry({ id: "gamma", name: "Gamma", tables: [tableEntry({ game: "rocket", market: "one" })] }),
];

/** As `api` has them: PostgreSQL and the schema count, the others are only reported. */
export const CHECKS: Checks = {
  postgres: { isGood: () => Promise.resolve(true), required: true },
  migrations: { isGood: () => Promise.resolve(true), required: true },
  redis: { isGood: () => Promise.resolve(false), required: false },
  polling: { isGood: () => Promise.resolve(false), required: false },
};

/** A key, or enough of one to be one. */
const KEY = /rh_live_[0-9A-Za-z]{5}/;

/** Calls per second, and the burst, of every seeded plan in a world. */
export const FAST = 100_000;

/** No deadline passes because the machine is busy. Tests of outages use the usual {@link TIMES}. */
export const PATIENT: ApiTimes = {
  ...TIMES,
  lookupMs: 20_000,
  sentWithinMs: 20_000,
  countedWithinMs: 20_000,
  verdictMs: 25_000,
  usageMs: 20_000,
};

/** A change is seen because it was announced, and for no other reason. */
export const ANNOUNCED: ApiTimes = { ...PATIENT, cachedMs: 600_000, readEveryMs: 600_000 };

const SETTINGS: ApiParts["settings"] = {
  HOST: "127.0.0.1",
  PORT: 0,
  PUBLIC_URL: undefined,
  LIVE_WINDOW_SECONDS: 300,
  BUFFER_ROUNDS: 200,
  TRUSTED_PROXIES: [],
};

const at = z.string().regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}0Z$/);
const tableName = { house: z.string(), game: z.string(), market: z.string() };
const status = z.enum(["live", "stale", "offline", "paused"]);

/** `/games`, with these fields and no others. */
export const gamesBody = z.strictObject({
  ok: z.literal(true),
  plan: z.string(),
  games: z.array(
    z.strictObject({
      ...tableName,
      continuity_notice: z.boolean(),
      continuity_text: z.string().nullable(),
      status,
      last_round_at: at.nullable(),
      buffered_rounds: z.int(),
    }),
  ),
});

/** `/rounds`, with these fields and no others. */
export const roundsBody = z.strictObject({
  ok: z.literal(true),
  plan: z.string(),
  tables: z.array(
    z.strictObject({
      ...tableName,
      status,
      last_round_at: at.nullable(),
      rounds: z.array(
        z.strictObject({
          round_id: z.string(),
          multiplier: z.number(),
          color: z.string(),
          occurred_at: at.nullable(),
          received_at: at,
          verified: z.boolean().nullable(),
          late: z.boolean(),
        }),
      ),
    }),
  ),
});

/** Every error, with these fields and no others. */
export const errorBody = z.strictObject({
  ok: z.literal(false),
  error: z.strictObject({
    code: z.string(),
    message: z.string(),
    docs_url: z.string(),
    details: z.record(z.string(), z.unknown()).optional(),
  }),
  request_id: z.string().regex(/^req_[0-9a-f]{32}$/),
});

/** A running API on its own database. */
export interface World {
  sql: Sql;
  databaseUrl: string;
  api: Api;
  /** Of an account with the plan Pro, which includes all houses. */
  key: string;
  /** Everything the API logged, one JSON line each. */
  lines: string[];
  /** Requests with the key, and checks the response against the OpenAPI document; `headers` are added, and may replace the key. */
  get(path: string, options?: { method?: string; headers?: Record<string, string> }): Promise<Response>;
  /** The error a request ends with, after checking its shape. */
  refused(path: string, options?: { method?: string; headers?: Record<string, string> }): Promise<Refusal>;
  close(): Promise<void>;
}

/** What a test looks at of an error. */
export interface Refusal {
  status: number;
  code: string;
  message: string;
  details: Record<string, unknown> | undefined;
  headers: Headers;
}

/**
 * Makes a world, or with `on` another process on the database of one; `through` is an address that leads to the
 * database another way.
 */
export async function makeWorld(
  changed: Partial<ApiParts["settings"]> = {},
  options: {
    checks?: Checks;
    on?: World;
    through?: (databaseUrl: string) => Promise<string>;
    redisUrl?: string;
    secret?: string;
    /** Loads of the first page from one address; unlimited when not given, since tests load it as fast as they can. */
    firstPage?: ApiParts["firstPage"];
    limits?: ApiParts["limits"];
    /** {@link PATIENT} by default. */
    times?: ApiTimes;
    /** Connections of the API, 3 by default. */
    connections?: number;
  } = {},
): Promise<World> {
  const { on } = options;
  const database = on === undefined ? await createDatabase() : { url: on.databaseUrl, drop: () => Promise.resolve() };
  const sql = connect(database.url, { name: "test", max: 3 });
  if (on === undefined) {
    await applyHouses(sql, HOUSES);
    // a test requests as fast as it can; those about the burst make their own plan
    await sql`update plans set burst_per_second = ${FAST}, burst = ${FAST}`;
  }
  const key = on?.key ?? (await makeKey(sql, "ann@example.com", "Pro"));
  const lines: string[] = [];
  const log = pino({ level: "debug" }, { write: (line) => void lines.push(line) });
  const apiUrl = withRole((await options.through?.(database.url)) ?? database.url, ROLES.api);
  const apiSql = connect(apiUrl, { name: "api", max: options.connections ?? 3 });
  const close = async () => {
    await apiSql.end({ timeout: 1 });
    await sql.end();
    await database.drop();
  };
  const api = await startApi({
    sql: apiSql,
    directUrl: apiUrl,
    redisUrl: options.redisUrl,
    settings: { ...SETTINGS, ...changed },
    log,
    version: "1.2.3",
    checks: options.checks ?? CHECKS,
    secret: options.secret ?? "one for all processes",
    firstPage: options.firstPage ?? { points: FAST, seconds: 60 },
    limits: options.limits,
    times: options.times ?? PATIENT,
  }).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  const get: World["get"] = async (path, { method = "GET", headers = {} } = {}) => {
    const response = await fetch(api.url + path, { method, headers: { "X-Api-Key": key, ...headers } });
    await conform(method, path, response.clone());
    return response;
  };
  return {
    sql,
    databaseUrl: database.url,
    api,
    key,
    lines,
    get,
    async refused(path, asked) {
      const response = await get(path, asked);
      const { error } = errorBody.parse(await response.json());
      const { code, message, details } = error;
      return { status: response.status, code, message, details, headers: response.headers };
    },
    async close() {
      await api.close();
      await close();
      expect(lines.filter((line) => KEY.test(line))).toEqual([]);
    },
  };
}

/** A key of a new account with this plan. */
export async function makeKey(sql: Sql, email: string, plan: string): Promise<string> {
  await createAccount(sql, email);
  const made = await createKey(sql, { email, plan });
  if (!made.ok) throw new Error(made.problem);
  return made.key;
}

/** What of a round matters to a test. */
export interface GivenRound {
  id: string;
  hundredths?: number;
  color?: string;
  late?: boolean;
  verified?: boolean | null;
  occurredAt?: string | null;
  receivedAt?: string;
  source?: "poll" | "import";
}

const SOURCES = ["poll", "history", "computed", "import"];

/** Stores rounds as a pass would, in this order; `announce` notifies the API. */
export async function addRounds(
  sql: Sql,
  table: string,
  rounds: readonly GivenRound[],
  { announce = true }: { announce?: boolean } = {},
): Promise<void> {
  const id = await tableIdOf(sql, table);
  await sql.begin(async (transaction) => {
    const [head] = await transaction<{ seq: bigint; ordinal: bigint; newest: bigint | null; names: string[] }[]>`
      select
        h.last_seq as seq, h.last_ordinal as ordinal, h.newest_seq as newest,
        array(select band ->> 'name' from jsonb_array_elements(p.bands) as band) as names
      from table_heads h
      join palettes p on p.id = h.palette
      where h.table_id = ${id}
      for no key update of h`;
    if (head === undefined) throw new Error(`no table ${table}`);
    let { seq, ordinal, newest } = head;
    const rows = rounds.map((round) => {
      const { hundredths = 187, color = "blue", late = false, verified = null, source = "poll" } = round;
      const {
        id: round_id,
        occurredAt: occurred_at = null,
        receivedAt: received_at = new Date().toISOString(),
      } = round;
      seq += 1n;
      if (!late) [newest, ordinal] = [seq, ordinal + 1n];
      return {
        seq: String(seq),
        ordinal: late ? null : String(ordinal),
        round_id,
        hundredths: String(hundredths),
        color: head.names.indexOf(color),
        source: SOURCES.indexOf(source),
        received_at,
        occurred_at,
        late,
        verified,
      };
    });
    await transaction`
      insert into rounds (
        table_id, seq, ordinal, round_id, hundredths, raw_value, palette, color, source, requested_at, received_at,
        occurred_at, after_gap, late, verified, proof_hash, history_hash
      )
      select
        h.table_id, r.seq, r.ordinal, r.round_id, r.hundredths, 'raw', h.palette, r.color, r.source, r.received_at,
        r.received_at, r.occurred_at, false, r.late, r.verified,
        case when r.verified is not null then decode(repeat('00', 32), 'hex') end, decode(repeat('00', 32), 'hex')
      from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as r (
        seq bigint, ordinal bigint, round_id text, hundredths bigint, color smallint, source smallint,
        received_at timestamptz, occurred_at timestamptz, late boolean, verified boolean
      )
      join table_heads h on h.table_id = ${id}`;
    await transaction`
      update table_heads h
      set
        version = version + 1,
        changed_at = clock_timestamp(),
        last_seq = ${seq},
        last_ordinal = ${ordinal},
        newest_seq = ${newest},
        newest_round_id = (select round_id from rounds r where r.table_id = h.table_id and r.seq = ${newest}),
        last_round_at = (select max(received_at) from rounds r where r.table_id = h.table_id),
        last_polled_round_at = (select max(received_at) from rounds r where r.table_id = h.table_id and r.source = 0)
      where table_id = ${id}`;
  });
  if (announce) await sql`select pg_notify('roundhouse_published', ${String(id)})`;
}

/** The id of a table by its name, `house/game/market`. */
export async function tableIdOf(sql: Sql, name: string): Promise<number> {
  const [table] = await sql<{ id: number }[]>`
    select id
    from tables
    where house_id || '/' || game || '/' || market = ${name}`;
  if (table === undefined) throw new Error(`expected the table ${name}, found none`);
  return table.id;
}

/** Rounds with ids from one number to another, oldest first. */
export function countedRounds(from: number, to: number): GivenRound[] {
  return Array.from({ length: to - from + 1 }, (_, n) => ({ id: String(from + n) }));
}

/** A moment that many seconds ago, as PostgreSQL reads it. */
export function secondsAgo(seconds: number): string {
  return new Date(Date.now() - seconds * 1_000).toISOString();
}
