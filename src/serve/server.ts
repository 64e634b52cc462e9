import { beatUptime, type UptimeBeat } from "./uptime-beat.ts";
import { noteApiUptime } from "./uptime-store.ts";
import type { RequestListener } from "node:http";
import compression from "compression";
import express, { type Express, type RequestHandler } from "express";
import { CALLERS_CHANNEL, findCaller } from "../callers/caller-store.ts";
import { touchKeys } from "../callers/key-store.ts";
import type { Settings } from "../config/environment.ts";
import type { Sql } from "../db/client.ts";
import { listen } from "../db/connections/listener.ts";
import { notifiedTables, PUBLISHED_CHANNEL } from "../db/connections/notifier.ts";
import { openBuckets, type Buckets, type Size } from "../limits/buckets.ts";
import { isBelow } from "../http/paths.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { traceRequest } from "../telemetry.ts";
import { addPages, type SiteSettings } from "../site/pages.ts";
import { saveCallMinutes } from "../usage/call-minute-store.ts";
import { consumeCalls, type Call } from "../usage/store.ts";
import { ApiError } from "../http/errors.ts";
import { requireCaller } from "../api/gate.ts";
import { addHealth, type Checks } from "../http/health.ts";
import { openServer, type ServerLimits } from "../http/http.ts";
import { knowCallers } from "../api/known-callers.ts";
import { recordCalls } from "../api/recorded-calls.ts";
import { rememberLastUsed, type LastUsed } from "../api/last-used.ts";
import { loadMemory } from "../published/memory.ts";
import { meterCalls } from "../api/metering.ts";
import { addMetrics } from "../http/metrics.ts";
import { addOperation, OPERATIONS } from "../api/operations.ts";
import { etagKeyOf } from "../http/etag.ts";
import { addOpenApi } from "../api/openapi/route.ts";
import { sendErrors, urlOf, beginRequest, refuseUnfit, type Reply, setCommonHeaders } from "../http/request.ts";
import type { Table } from "../published/tables.ts";
import { TIMES, type ApiTimes } from "../api/times.ts";
import { USAGE_PATH } from "../api/usage.ts";
import { addUsage } from "./usage-route.ts";

/** Smaller responses do not shrink. */
const COMPRESSED_FROM_BYTES = 1_024;

/** What the API and the site need. */
export interface ApiParts {
  /** Connections for reads. */
  sql: Sql;
  /** Connections for counting calls and finding callers; those above by default. */
  meter?: Sql;
  /** Connections to a replica, for published data and the site; those above by default. */
  replica?: Sql | undefined;
  /** A direct connection string, not through a transaction pooler: for LISTEN. */
  directUrl: string;
  /** The Redis in which processes share rate limits; without it, or while it is unavailable, each process has its own. */
  redisUrl: string | undefined;
  settings: Pick<
    Settings,
    "HOST" | "PORT" | "PUBLIC_URL" | "LIVE_WINDOW_SECONDS" | "BUFFER_ROUNDS" | "TRUSTED_PROXIES" | "METRICS_TOKEN"
  > &
    SiteSettings;
  log: Log;
  version: string;
  checks: Checks;
  /** The key of ETags: the same in all processes behind one address, also after a restart. */
  secret: string;
  /** The rate limit of the home page per client address; see SiteParts. */
  firstPage?: Size;
  /** Deadlines and intervals; `TIMES` by default. */
  times?: ApiTimes;
  /** How much of the server one client may occupy; `LIMITS` by default. */
  limits?: ServerLimits | undefined;
  /** Counts requests and serves `/metrics`; without it there is no such path. */
  metrics?: Metrics;
  /** Handlers of everything below a path such as `/ops`, made from what the process shares. */
  surfaces?: readonly { base: string; listener: (shared: SharedParts) => RequestListener }[];
}

/** What the surfaces of a process share with its API. */
export interface SharedParts {
  buckets: Buckets;
  /** The public address. */
  site: () => string;
  /** The address on this machine, once it listens. */
  ownUrl: () => string;
}

/** API paths that metrics distinguish. */
export const ENDPOINTS: readonly string[] = [...OPERATIONS.map(({ path }) => path), USAGE_PATH];

/** The running API. */
export interface Api {
  /** The address on this machine, without a trailing slash. */
  url: string;
  port: number;
  /** Whether the memory has rounds of every polled table. */
  hasRounds(): boolean;
  /** From now on `/readyz` returns 503 and each response closes its connection; every request is still handled. */
  draining(): void;
  /**
   * Accepts no new connections, lets running requests finish for up to 8 s, writes what is pending, and releases the
   * database.
   */
  close(): Promise<void>;
}

/**
 * Serves the API, the site and the health checks: published data, from memory, to callers with a key.
 *
 * Known callers are served even while PostgreSQL, Redis or every worker is down; `X-Data-Age` is the age of the data.
 * Closes nothing that it was given.
 * @throws UsageError if the port is taken; the driver's error if the published data cannot be read at the start.
 */
export async function startApi(given: ApiParts): Promise<Api> {
  const state = await openState(given);
  const app = createApp(given.settings.TRUSTED_PROXIES);
  addRoutes(app, given, state);
  const listener = followDatabase(given, state);
  const closeState = async () => {
    state.buckets.close();
    const { memory, lastUsed, recorded, uptime } = state;
    await Promise.all([listener.close(), memory.close(), lastUsed.close(), recorded.close(), uptime.close()]);
  };
  try {
    return await serve(app, given, state, closeState);
  } catch (error) {
    await closeState();
    throw error;
  }
}

/** What the routes of one server share. */
interface ApiState {
  memory: Awaited<ReturnType<typeof loadMemory>>;
  callers: ReturnType<typeof knowCallers>;
  lastUsed: LastUsed;
  buckets: Buckets;
  recorded: ReturnType<typeof recordCalls>;
  uptime: UptimeBeat;
  metering: ReturnType<typeof meterCalls>;
  /** The public address, and that on this machine once it listens; without a trailing slash. */
  address: { site: string; own: string };
  isDraining: boolean;
}

async function openState(given: ApiParts): Promise<ApiState> {
  const { sql, meter = sql, replica, redisUrl, settings, log, metrics, times = TIMES } = given;
  const { BUFFER_ROUNDS: bufferRounds, LIVE_WINDOW_SECONDS: liveWindowSeconds } = settings;
  const published = {
    bufferRounds,
    liveWindowSeconds,
    isReplica: replica !== undefined,
    readEveryMs: times.readEveryMs,
  };
  const memory = await loadMemory(replica ?? sql, published, log);
  const nowMs = () => memory.clock().nowMs;
  const consume = (calls: readonly Call[], deadline: Date) => consumeCalls(meter, calls, deadline);
  return {
    memory,
    callers: knowCallers((sha256) => findCaller(meter, sha256), log, times),
    lastUsed: rememberLastUsed((keys) => touchKeys(meter, keys), log),
    buckets: openBuckets(redisUrl, log),
    recorded: recordCalls((minutes) => saveCallMinutes(sql, minutes), nowMs, log),
    uptime: beatUptime(() => noteApiUptime(sql), log),
    metering: meterCalls(metrics?.api.batches(consume) ?? consume, nowMs, log, times),
    address: { site: settings.PUBLIC_URL ?? "", own: "" },
    isDraining: false,
  };
}

/** Adds all routes, in the order in which they are compared with a request. */
function addRoutes(app: Express, given: ApiParts, state: ApiState): void {
  const { sql, replica, settings, log, version, checks, metrics } = given;
  const { memory, callers, lastUsed, buckets, metering, address } = state;
  const etagKey = etagKeyOf(given.secret);
  const site = () => address.site;
  const caller = requireCaller({ callers, buckets });
  const sendError = sendErrors(site, log, metrics?.api.refused);
  addRecording(app, given, state);
  app.use((request, response, next) => traceRequest(request, response, urlOf(request).loggedPath, next));
  const shared = { buckets, site, ownUrl: () => address.own };
  app.use(serveSurfaces((given.surfaces ?? []).map(({ base, listener }) => ({ base, listener: listener(shared) }))));
  app.use(refuseUnfit);
  for (const operation of OPERATIONS) addOperation(app, operation, { memory, caller, lastUsed, metering, etagKey });
  app.use(sendError); // of operations: 50 routes follow, which Express would compare with the path of each refusal
  app.use(setCommonHeaders);
  app.use(compression({ threshold: COMPRESSED_FROM_BYTES })); // operations keep their bodies compressed
  addUsage(app, { sql, caller, lastUsed, usageMs: (given.times ?? TIMES).usageMs });
  addHealth(app, { version, checks, isDraining: () => state.isDraining }, log);
  if (metrics !== undefined) addMetrics(app, metrics, settings);
  addOpenApi(app, { version, site });
  const { firstPage } = given;
  addPages(app, { memory, sql: replica ?? sql, version, site, settings, log, buckets, firstPage });
  app.use(() => {
    throw new ApiError("not_found");
  });
  app.use(sendError);
}

/** Logs each request, and counts it for metrics and for its caller. */
function addRecording(app: Express, { log, metrics }: ApiParts, { recorded }: ApiState): void {
  app.use(
    beginRequest(log, (path, status, ms, facts) => {
      metrics?.api.requests.note(path, status, ms);
      if (facts !== null) recorded.note(path, status, facts);
    }),
  );
}

/** Keeps memory and callers current: by notifications, and by a full read after each connect. */
function followDatabase({ directUrl, log }: ApiParts, { memory, callers }: ApiState): ReturnType<typeof listen> {
  return listen(
    directUrl,
    {
      channels: [PUBLISHED_CHANNEL, CALLERS_CHANNEL],
      notified: (channel, payload) =>
        channel === CALLERS_CHANNEL ? callers.doubt() : memory.refresh(notifiedTables(payload)),
      joined() {
        callers.doubt();
        memory.refresh();
      },
    },
    log,
  );
}

async function serve(
  app: Express,
  { settings, log, limits }: ApiParts,
  state: ApiState,
  closeState: () => Promise<void>,
): Promise<Api> {
  const { memory, address } = state;
  const place = { host: settings.HOST, port: settings.PORT, variable: "PORT" } as const;
  const server = await openServer(app, place, () => address.site, log, limits);
  address.own = server.url;
  if (address.site === "") address.site = server.url;
  return {
    url: server.url,
    port: server.port,
    hasRounds: () => memory.tables.tables.every((table) => table.rounds.length > 0 || !isPolled(table)),
    draining() {
      state.isDraining = true;
      server.draining();
    },
    async close() {
      state.isDraining = true;
      await server.close();
      await closeState();
    },
  };
}

function isPolled({ enabled, house }: Table): boolean {
  return enabled && house.enabled && !house.paused;
}

function createApp(trustedProxies: string[]): Express {
  const app = express();
  app.set("trust proxy", trustedProxies); // only these may state the address of a client
  app.disable("x-powered-by");
  app.disable("etag"); // see isNamed
  app.set("query parser", false); // see readParams
  app.enable("case sensitive routing");
  app.enable("strict routing");
  return app;
}

/** Unlike `app.use(base, …)`, leaves the URL whole, since the surfaces route by it. */
function serveSurfaces(surfaces: readonly { base: string; listener: RequestListener }[]): RequestHandler {
  return (request, response, next) => {
    const { path } = urlOf(request);
    const surface = surfaces.find(({ base }) => isBelow(base, path));
    if (surface === undefined) return next();
    setCommonHeaders(request, response as typeof response & Reply, () => surface.listener(request, response));
  };
}
