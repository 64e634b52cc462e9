import { jobs } from "../../jobs/index.ts";
import { ENDPOINTS, startApi } from "../../src/serve/server.ts";
import { loadSettings } from "../../src/config/environment.ts";
import { createHouseClient } from "../../src/houses/polling/http.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { createMetrics, type Metrics } from "../../src/metrics/metrics.ts";
import { CHECKS, makeKey, PATIENT } from "../api/world.ts";
import { createWorld, type World } from "../queue/world.ts";
import { page, respondWith, startBadHouse, type BadHouse } from "../support/bad-house.ts";
import { eventually } from "../support/eventually.ts";
import { passesTo } from "../support/passes-to.ts";
import { feedEntry, houseEntry, tableEntry } from "../support/houses.ts";

/** Everything at work in this process: one house, all jobs, the API, and the metrics of all of it. */
export interface WorkingWorld extends World {
  house: BadHouse;
  metrics: Metrics;
  apiUrl: string;
  key: string;
  /** The house plays its next round; gives when the response that brought it was received, once it is stored. */
  play(): Promise<string>;
}

/** A house whose first three rounds are stored; its pause is long, so that every further one is forecast after. */
export async function createWorkingWorld(): Promise<WorkingWorld> {
  const world = await createWorld();
  const { sql, databaseUrl: directUrl, redisUrl, log } = world;
  const house = await startBadHouse();
  let newest = 100;
  house.on("/rounds", respondWith(page(newest)));
  await applyHouses(sql, [
    houseEntry({
      base_url: house.url,
      poll_every_ms: 100,
      tables: [tableEntry({ feed: feedEntry(), pause_ms: 20_000 })],
    }),
  ]);
  const settings = loadSettings({ ALLOW_PRIVATE_HOUSES: "1", PORT: "0" });
  const metrics = createMetrics({ sql, queues: () => workers.queues }, { version: "1.2.3", endpoints: ENDPOINTS, log });
  const http = metrics.houses(createHouseClient({ version: "1.2.3" }));
  const workers = await world.start(jobs, { passes: passesTo(directUrl), settings, http, ran: metrics.ran });
  const api = await startApi({
    sql,
    directUrl,
    redisUrl,
    settings,
    log,
    version: "1.2.3",
    checks: CHECKS,
    times: PATIENT,
    secret: "a secret of a test",
    metrics,
  });
  const receiptOf = (roundId: number) =>
    eventually(async () => {
      const [row] = await sql<{ at: string }[]>`
        select utc_text(received_at) as at
        from rounds
        where round_id = ${String(roundId)}`;
      return row?.at;
    });
  await receiptOf(newest);
  return {
    ...world,
    house,
    metrics,
    apiUrl: api.url,
    key: await makeKey(sql, "ann@example.com", "Pro"),
    play() {
      house.on("/rounds", respondWith(page(++newest)));
      return receiptOf(newest);
    },
    async end() {
      await api.close();
      await world.end();
      await http.close();
      await house.close();
    },
  };
}
