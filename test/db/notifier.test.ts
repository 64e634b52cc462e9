import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { createNotifier, notifiedTables } from "../../src/db/connections/notifier.ts";
import { LEVEL, readableLog } from "../queue/world.ts";
import { createDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { listening } from "../support/listening.ts";

let database: Awaited<ReturnType<typeof createDatabase>>;
let sql: Sql;
beforeEach(async () => {
  database = await createDatabase();
  sql = connect(database.url, { name: "test" });
});
afterEach(async () => {
  await sql.end({ timeout: 1 });
  await database.drop();
});

/** Records notifications, in order; `mark` sends one through the same channel, so that all before it have arrived. */
async function listen() {
  const { heard, close } = await listening(database.url, "roundhouse_published");
  onTestFinished(close);
  const mark = async () => {
    await sql`select pg_notify('roundhouse_published', 'mark')`;
    await eventually(() => heard.at(-1) === "mark");
  };
  return { heard, mark };
}

describe("the notifier", () => {
  it("makes one notification of everything published together, and another of what follows meanwhile", async () => {
    const { heard, mark } = await listen();
    const notifier = createNotifier(sql, readableLog().log);
    for (let times = 0; times < 100; times++) notifier.published();
    await eventually(() => heard.length === 1);
    for (let times = 0; times < 100; times++) notifier.published();
    await notifier.close();
    await mark();
    expect(heard).toEqual(["", "", "mark"]);
  });

  it("names each table that changed once, and none when one call was about all", async () => {
    const { heard, mark } = await listen();
    const notifier = createNotifier(sql, readableLog().log);
    notifier.published([3, 1]);
    notifier.published([1, 2]);
    await eventually(() => heard.length === 1);
    notifier.published([4]);
    notifier.published();
    notifier.published([5]);
    await notifier.close();
    await mark();
    expect(heard).toEqual(["3,1,2", "", "mark"]);
    expect(heard.map(notifiedTables)).toEqual([[3, 1, 2], null, null]);
  });

  it("names no tables when they do not fit in a notification", async () => {
    const { heard, mark } = await listen();
    const notifier = createNotifier(sql, readableLog().log);
    notifier.published(Array.from({ length: 5_000 }, (_, id) => 1_000_000_000 + id));
    await notifier.close();
    await mark();
    expect(heard).toEqual(["", "mark"]);
  });

  it("sends nothing if nothing was published", async () => {
    const { heard, mark } = await listen();
    const notifier = createNotifier(sql, readableLog().log);
    await notifier.close();
    await mark();
    expect(heard).toEqual(["mark"]);
  });

  it("logs a notice that could not be sent, and sends the next one", async () => {
    const { heard } = await listen();
    const { log, lines } = readableLog();
    const gone = connect("postgres://nobody@127.0.0.1:9/none", { name: "gone" });
    const broken = createNotifier(gone, log);
    broken.published();
    await broken.close();
    expect(lines).toMatchObject([{ level: LEVEL.warn, msg: expect.stringContaining("ECONNREFUSED") }]);
    await gone.end({ timeout: 1 });
    const notifier = createNotifier(sql, log);
    notifier.published();
    await notifier.close();
    await eventually(() => heard.includes(""));
  });
});
