// A process that answers callers: node api-process.ts DATABASE_URL REDIS_URL; sends its URL once it does, and ends
// with whoever started it.
import pino from "pino";
import { startApi } from "../../src/api/server.ts";
import { connect } from "../../src/db/client.ts";

const [databaseUrl = "", redisUrl = ""] = process.argv.slice(2);
const good = { isGood: () => Promise.resolve(true), required: true };
const api = await startApi({
  sql: connect(databaseUrl, { name: "api", max: 3 }),
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
  log: pino({ level: "silent" }),
  version: "1.2.3",
  checks: { postgres: good, redis: good, migrations: good, polling: good },
});
process.once("disconnect", () => process.exit());
process.send?.(api.url);
