import { expect, it } from "vitest";
import { listKeys } from "../../src/callers/key-store.ts";
import { mintDemoKey } from "../../src/cli/run/demo-key.ts";
import { openTestDatabase } from "../support/database.ts";

const { sql } = await openTestDatabase();

it("the demo key of a start replaces those of starts that were killed, however many they are", async () => {
  for (let start = 0; start < 7; start += 1) await mintDemoKey(sql);
  const states = (await listKeys(sql, "demo@localhost")).map(({ state }) => state);
  expect(states).toEqual([...Array.from({ length: 6 }, () => "revoked"), "active"]);
  const { revoke } = await mintDemoKey(sql);
  await revoke();
  expect((await listKeys(sql, "demo@localhost")).filter(({ state }) => state === "active")).toEqual([]);
});
