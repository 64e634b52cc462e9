// A process that serves callers: node api-process.ts DATABASE_URL REDIS_URL [TIMES]; sends its URL once it does, and
// exits with its parent. TIMES is an ApiTimes in JSON.
import pino from "pino";
import type { ApiTimes } from "../../src/api/times.ts";
import { ENDPOINTS, startApi } from "../../src/serve/server.ts";
import { connect } from "../../src/db/client.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";

const [databaseUrl = "", redisUrl = "", times] = process.argv.slice(2);
const good = { isGood: () => Promise.resolve(true), required: true };
const sql = connect(databaseUrl, { name: "api", max: 3 });
const log = pino({ level: "silent" });
const api = await startApi({
  sql,
  directUrl: databaseUrl,
  redisUrl: redisUrl === "" ? undefined : redisUrl,
  settings: {
    HOST: "127.0.0.1",
    PORT: 0,
    PUBLIC_URL: undefined,
    LIVE_WINDOW_SECONDS: 300,
    BUFFER_ROUNDS: 200,
    TRUSTED_PROXIES: [],
  },
  log,
  version: "1.2.3",
  secret: "one for all processes",
  ...(times !== undefined && { times: JSON.parse(times) as ApiTimes }),
  checks: { postgres: good, redis: good, migrations: good, polling: good },
  metrics: createMetrics({ sql, queues: () => null }, { version: "1.2.3", endpoints: ENDPOINTS, log }),
});
process.once("disconnect", () => process.exit());
process.send?.(api.url);
