import { beforeAll, describe, expect, it } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import { connect, openPipeline, type Sql } from "../../src/db/client.ts";
import { createPasses } from "../../src/pass/passes.ts";
import { testContext } from "../support/context.ts";
import { createDatabase } from "../support/database.ts";
import { feedEntry } from "../support/houses.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { atSecond, makeItem, makePayload, makeTable } from "../support/make.ts";
import { eventually } from "../support/eventually.ts";
import { roundhouse, startRoundhouse } from "./world.ts";

let env: Record<string, string>;
let sql: Sql;

beforeAll(async () => {
  const database = await createDatabase();
  env = { DATABASE_URL: database.url };
  sql = connect(database.url, { name: "test", max: 1 });
  const table = await makeTable(sql);
  await makePayload(sql, table, { second: 0, items: [makeItem(2, 1.5), makeItem(1, 1.2)] });
  await makePayload(sql, table, { second: 1, items: [makeItem(3, 2.5), makeItem(2, 1.75)] });
  await makePayload(sql, table, { second: 2, body: JSON.stringify({ games: [makeItem(4, 1.3)] }) });
  await makePayload(sql, table, { second: 3, items: [makeItem(9, 1.1)] });
  const pipeline = openPipeline(database.url, { name: "test" });
  await normalizeRounds.run({ house: "alpha" }, testContext(sql, { passes: createPasses(pipeline) }).context);
  await pipeline.end();
  await makeTable(sql, { feed: feedEntry({ items: "games || rounds" }) });
  return async () => {
    await sql.end();
    await database.drop();
  };
});

async function json(...args: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await roundhouse([...args, "--json"], { env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

describe("at night without a browser", () => {
  it("payloads are read again, conflicts decided and rounds corrected, and the log has every action", async () => {
    const range = ["payload", "reread", "--house", "alpha", "--from", atSecond(-60)];
    expect(await json(...range, "--dry-run")).toMatchObject({ payloads: 4, readable: 1, rounds: 1, next: null });
    expect(await json(...range, "--reason", "new format")).toMatchObject({ readable: 1, rounds: 1 });
    const decision = ["conflict", "decide", "1", "--take", "other", "--reason", "they said so"];
    expect(await json(...decision)).toMatchObject([{ conflict_id: 1, round_id: "2", from: 1.5, to: 1.75 }]);
    const again = await roundhouse(decision, { env });
    expect(again.code).toBe(1);
    expect(again.stderr).toContain("conflict 1 is already decided");
    const revise = ["round", "revise", "--table", "alpha/crash/global", "--round", "3", "--reason", "a test round"];
    expect(await json(...revise, "--to", "void")).toMatchObject({ round_id: "3", from: 2.5, to: null });
    expect(await json("round", "revisions")).toMatchObject([
      { round_id: "3", from: 2.5, to: null, conflict_id: null },
      { round_id: "2", from: 1.5, to: 1.75, conflict_id: 1 },
    ]);
    const entries = await sql`select surface, action from audit_log order by seq`;
    expect(entries).toEqual(
      ["payload.reread", "payload.reread", "conflict.decide", "round.revise"].map((action) => ({
        surface: "cli",
        action,
      })),
    );
  });
});

describe("JSON of commands", () => {
  it("has snake_case names", async () => {
    await json("notice", "write", "it moves", "--house", "alpha", "--reason", "they mailed us");
    await json("account", "create", "ann@example.com");
    const rows = (await json("payload", "list")) as { table: string; received_at: string }[];
    const { table = "", received_at: receivedAt = "" } = rows[0] ?? {};
    const printed = [
      rows,
      await json("payload", "show", table, receivedAt),
      await json("round", "revisions"),
      await json("gap", "list"),
      await json("notice", "list"),
      await json("account", "list"),
      await json("account", "show", "ann@example.com"),
    ];
    for (const one of printed) {
      expect(one).not.toEqual([]);
      expect(JSON.stringify(one).match(/"[a-z]+[A-Z]\w*":/g)).toBeNull();
    }
  });
});

describe("reading payloads again", () => {
  it("is interrupted with an error also before its first payload, while its audit entry waits for another", async () => {
    const holder = connect(env["DATABASE_URL"] ?? "", { name: "holder", max: 1 });
    await holder`begin`;
    await holder`select from audit_head for update`;
    const args = ["payload", "reread", "--house", "alpha", "--from", atSecond(-60), "--reason", "new format", "--json"];
    const started = startRoundhouse(args, { env });
    await lockWaits(sql, 1);
    started.kill("SIGINT");
    await eventually(() => started.output.stderr.includes("stopping") || started.child.signalCode !== null);
    await holder`rollback`;
    await holder.end();
    const { code, stderr } = await started.ended;
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining("interrupted; what is stored stays") as string,
    });
  });
});

describe("repairing a table", () => {
  it("has the time limits of long work, which a large table needs", async () => {
    await sql.unsafe(`
      create function show_limit() returns trigger language plpgsql as $$
      begin
        raise exception 'a statement may take %', current_setting('statement_timeout');
      end
      $$;
      create trigger show_limit before insert on audit_log for each row execute function show_limit()`);
    const repaired = await roundhouse(["table", "repair", "alpha/crash/global", "--reason", "damaged"], { env });
    await sql.unsafe("drop trigger show_limit on audit_log");
    expect(repaired.stderr).toContain("a statement may take 6h");
  });
});
