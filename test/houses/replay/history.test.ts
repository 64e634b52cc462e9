import path from "node:path";
import { expect, test } from "vitest";
import backfillGap from "../../../jobs/backfill-gap.ts";
import normalizeRounds from "../../../jobs/normalize-rounds.ts";
import pollHouse from "../../../jobs/poll-house.ts";
import { createReplayHouse } from "../../../src/demo/replay/house.ts";
import { createHouseClient } from "../../../src/houses/polling/http.ts";
import { applyHouses } from "../../../src/houses-file/apply-store.ts";
import { testContext } from "../../support/context.ts";
import { passesTo } from "../../support/passes-to.ts";
import { openTestDatabase } from "../../support/database.ts";
import { entryOf } from "./world.ts";

const FIXTURES = path.join(import.meta.dirname, "../../fixtures/replay");

const { sql, url: databaseUrl } = await openTestDatabase();

const JSON_FEED = {
  path: "/rounds?limit=5",
  items: "rounds",
  round_id: "id",
  multiplier: "multiplier",
  instant: [0],
  history: "/rounds?before={id}&limit={limit}",
};

test.each([
  { as: "json", file: "roobet", feed: JSON_FEED, base: "" },
  { as: "blaze", file: "blaze", feed: { api: "classic" }, base: "/api" },
  { as: "blaze", file: "blaze", feed: { api: "originals" }, base: "/api" },
])(
  "rounds that were missed between polls are read from the history of $as ($feed.api)",
  async ({ as, file, feed, base }) => {
    let nowMs = Date.now() - 60_000;
    const house = await createReplayHouse({
      file: path.join(FIXTURES, `${file}.csv`),
      as,
      host: "127.0.0.1",
      port: 0,
      speed: 1000,
      now: () => nowMs,
    });
    const http = createHouseClient({ version: "0.0.0" });
    try {
      const id = `${as}-${String(feed["api" as keyof typeof feed])}`;
      const roundIds = as === "json" ? "consecutive" : "opaque";
      await applyHouses(sql, [entryOf({ url: house.url + base }, { id, as, feed, colors: "ours", roundIds })]);
      const { context } = testContext(sql, {
        passes: passesTo(databaseUrl),
        http,
        env: { ALLOW_PRIVATE_HOUSES: "1" },
      });
      for (const place of [4, 29]) {
        nowMs = house.publishedAtMs(place);
        await pollHouse.run({ house: id, shard: 0 }, context);
        await normalizeRounds.run({ house: id }, context);
      }
      const stored = () => sql<{ id: string; hundredths: number }[]>`
      select r.round_id as id, r.hundredths::float8 as hundredths
      from rounds r
      join tables t on t.id = r.table_id
      where t.house_id = ${id}`;
      expect((await stored()).length).toBeLessThan(30);
      const gaps = await sql<{ id: string }[]>`
      select g.id::text
      from gaps g
      join tables t on t.id = g.table_id
      where t.house_id = ${id}`;
      expect(gaps).toHaveLength(1);
      await backfillGap.run({ gap: gaps[0]?.id ?? "" }, context);
      const byId = new Map((await stored()).map((round) => [round.id, round.hundredths]));
      expect(house.rounds.map((round) => byId.get(round.id))).toEqual(house.rounds.map(({ hundredths }) => hundredths));
    } finally {
      await http.close();
      await house.close();
    }
  },
);
