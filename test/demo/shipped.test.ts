import { describe, expect, it } from "vitest";
import { adapterOf } from "../../src/houses/adapters/index.ts";
import { SALT, TERMINATING_HASH } from "../../src/demo/bustabit-v2.ts";
import { SIMULATED_GAMES } from "../../src/demo/simulated-games.ts";
import { SHIPPED, SIMULATED_TABLES } from "./shipped.ts";
import { makeDemoHouse, START_MS } from "./world.ts";

describe("the shipped houses file", () => {
  it("has the true and the simulated demo house, and nothing that needs the network", () => {
    expect(SHIPPED.map(({ id, demo, simulated }) => ({ id, demo, simulated }))).toEqual([
      { id: "bustabit", demo: true, simulated: false },
      { id: "demo-simulated", demo: true, simulated: true },
    ]);
  });

  it("polls each house at least twice in its tables' shortest pause", () => {
    for (const { id, poll_every_ms, tables } of SHIPPED) {
      for (const { game, pause_ms } of tables) expect(poll_every_ms, `${id}/${game}`).toBeLessThanOrEqual(pause_ms / 2);
    }
  });

  it("states the pauses and edges that are played", () => {
    const stated = SIMULATED_TABLES.map(({ game, pause_ms, house_edge }) => ({
      game,
      pauseMs: pause_ms,
      edge: house_edge,
    }));
    expect(stated).toEqual(SIMULATED_GAMES.map(({ game, pauseMs, edge }) => ({ game, pauseMs, edge })));
  });

  it("reads the true house's list and history to the last field", async () => {
    const house = await makeDemoHouse();
    const table = SHIPPED[0]?.tables[0];
    if (table === undefined) throw new Error("expected a table");
    const adapter = adapterOf(table);
    const requests = [
      adapter.poll(table.feed, { newest: null }),
      adapter.history(table.feed, { beforeId: "151", limit: 150, page: 0, now: "2026-11-21T04:00:00Z" }),
    ];
    const rounds = [];
    for (const request of requests) {
      const body = Buffer.from(await (await house.get(request?.path ?? "")).arrayBuffer());
      const answer = adapter.read(table.feed, body, new Date(START_MS).toISOString());
      if (!answer.ok) throw new Error(answer.reason);
      rounds.push(...answer.items.map((item) => (item.ok ? item.round : item.reason)));
    }
    expect(rounds[0]).toEqual({
      roundId: "200",
      hundredths: 246,
      rawValue: "2.46",
      occurredAt: "2026-11-21T04:00:00.000Z",
      hash: "054d533d8443cf91340c9cb196a113436520d1b47e84352f72b98d2d87c5bb96",
    });
    expect(rounds).toHaveLength(200);
    expect(rounds.at(-1)).toMatchObject({ roundId: "1", hundredths: 1549 });
    expect(table.fairness).toMatchObject({ salt: SALT, terminating_hash: TERMINATING_HASH });
  });
});
