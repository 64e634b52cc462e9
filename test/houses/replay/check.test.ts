import path from "node:path";
import { expect, test, onTestFinished } from "vitest";
import { checkHouse } from "../../../src/cli/houses/house-check.ts";
import { loadSettings } from "../../../src/config/environment.ts";
import { adapters } from "../../../src/houses/adapters/index.ts";
import { createReplayHouse } from "../../../src/demo/replay/house.ts";
import { housesFile, roundhouse } from "../../cli/world.ts";
import { entryOf } from "./world.ts";

const FIXTURES = path.join(import.meta.dirname, "../../fixtures/replay");
const START_MS = Date.now() - 60_000;

/** A replay of one of our own files that has published its first eight rounds, and the houses file that names it. */
async function makeChecked(as: string) {
  const clock = { nowMs: START_MS };
  const house = await createReplayHouse({
    file: path.join(FIXTURES, `${as}.csv`),
    as,
    host: "127.0.0.1",
    port: 0,
    speed: 1000,
    now: () => clock.nowMs,
  });
  onTestFinished(() => house.close());
  clock.nowMs = house.publishedAtMs(7);
  const byPage = adapters[as as keyof typeof adapters].rounds === "page";
  const feed = as === "json" ? JSON_FEED : byPage ? { first_round_id: house.rounds[7]?.id } : {};
  const roundIds = ["blaze", "stake", "lucky-jet"].includes(as) ? "opaque" : "consecutive";
  const url = as === "blaze" ? `${house.url}/api` : house.url;
  const { entry } = entryOf({ url }, { id: "checked", as, feed, colors: "ours", roundIds });
  return { house, byPage, env: { HOUSES_FILE: await housesFile([entry]), ALLOW_PRIVATE_HOUSES: "1" } };
}

const JSON_FEED = { path: "/rounds", items: "rounds", round_id: "id", multiplier: "multiplier", instant: [0] };

test.each(Object.keys(adapters))("house check reads the replay of %s", async (as) => {
  const { house, byPage, env } = await makeChecked(as);
  const found = { settings: loadSettings(env), databaseUrl: undefined, redisUrl: undefined, running: null };
  const [check, ...others] = await checkHouse(found, "checked");
  expect(others).toEqual([]);
  const published = house.rounds.slice(byPage ? 7 : 0, 8).toReversed();
  expect(check).toMatchObject({ ok: true, status: 200, reason: null, items: published.length, refused: [] });
  expect(check?.rounds.map(({ round_id: id, multiplier }) => [id, Math.round(multiplier * 100)])).toEqual(
    published.map(({ id, hundredths }) => [id, hundredths]),
  );
});

test("house check --explain shows the request to a replay, its response and the first rounds", async () => {
  const { house, env } = await makeChecked("bcgame");
  const { code, stdout } = await roundhouse(["house", "check", "checked", "--explain"], { env });
  expect(code).toBe(0);
  expect(stdout).toContain(`> POST ${house.url}/api/game/bet/multi/history`);
  expect(stdout).toContain('"pageSize":50');
  expect(stdout).toContain("8 items, 8 rounds, 0 refused");
  for (const { id } of house.rounds.slice(0, 8)) expect(stdout).toContain(id);
});
