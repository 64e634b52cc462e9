import { join } from "node:path";
import { expect, inject, it, onTestFinished } from "vitest";
import { z } from "zod";
import { ask, housesFile, makeFolder } from "../cli/world.ts";
import { page, startBadHouse } from "../support/bad-house.ts";
import { createDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import { openProxy } from "../support/proxy.ts";
import { startPart } from "./world.ts";

const ARRIVES_WITHIN_MS = 30_000;
const ANSWERS_WITHIN_MS = 2_000;

const shown = z.object({ tables: z.array(z.object({ rounds: z.array(z.object({ round_id: z.string() })) })) });

it("rounds arrive at the API of an `up` again within 30 s after all its PostgreSQL connections went silent", async () => {
  const [database, house, folder] = [await createDatabase(), await startBadHouse(), await makeFolder()];
  const { port } = new URL(database.url);
  const proxy = await openProxy(() => Number(port));
  let newest = 100;
  house.on("/rounds", (_, response) => response.setHeader("content-type", "application/json").end(page(newest, 10)));
  const { entry } = houseEntry({
    id: "alpha",
    base_url: house.url,
    private: true,
    poll_every_ms: 500,
    tables: [tableEntry({ feed: { path: "/rounds", items: "rounds", round_id: "id", multiplier: "multiplier" } })],
  });
  const up = await startPart(["up"], {
    DATABASE_URL: Object.assign(new URL(database.url), { hostname: "127.0.0.1", port: String(proxy.port) }).href,
    REDIS_URL: inject("redisUrl"),
    DATA_DIR: join(folder, "data"),
    HOUSES_FILE: await housesFile([entry]),
    ALLOW_PRIVATE_HOUSES: "1",
    PORT: "0",
  });
  onTestFinished(async () => {
    proxy.closeSilenced();
    up.process.kill("SIGTERM");
    await up.process.ended;
    await proxy.close();
    await house.close();
    await database.drop();
  });

  const isShown = async (id: number) => {
    const late = new Promise<never>((_, reject) =>
      setTimeout(() => reject(new Error("the API did not answer")), ANSWERS_WITHIN_MS).unref(),
    );
    const { status, body } = await Promise.race([ask(up, "/api/v1/rounds?house=alpha"), late]);
    return status === 200 && shown.parse(body).tables[0]?.rounds[0]?.round_id === String(id);
  };
  await eventually(() => isShown(newest));
  await eventually(async () => (await ask(up, "/readyz")).status === 200);

  expect(proxy.silence()).toBeGreaterThan(5);
  const silentAt = performance.now();
  newest += 1; // played after the connections went silent
  await eventually(() => isShown(newest), { timeoutMs: ARRIVES_WITHIN_MS });
  console.log(`a round arrived ${((performance.now() - silentAt) / 1_000).toFixed(1)} s after the silence began`);
  await eventually(async () => (await ask(up, "/readyz")).status === 200);
}, 120_000);
