import pino from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import { listen } from "../../src/db/connections/listener.ts";
import { createDatabase } from "../support/database.ts";
import { countLeaks } from "./leaks.ts";

test("a lost connection is closed, and notifications on the next one are received", async () => {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  // the one that listens, and one that may be saying farewell
  expect(await countLeaks({ databaseUrl: database.url, what: "lost listeners" })).toBeLessThanOrEqual(2);
});

test("a listener that is closed while it connects joins nothing", async () => {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const joined = vi.fn<() => void>();
  const subscription = { channels: ["news"], notified: vi.fn<() => void>(), joined };
  await listen(database.url, subscription, pino({ level: "silent" })).close();
  expect(joined).not.toHaveBeenCalled();
});
