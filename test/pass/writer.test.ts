import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { connect, openPipeline, type Pipeline, type Sql } from "../../src/db/client.ts";
import { ConnectionLostError } from "../../src/db/errors.ts";
import { createLeaseTaker } from "../../src/houses/polling/lease-store.ts";
import { afterPoll } from "../../src/houses/polling/circuit.ts";
import { summarizePoll } from "../../src/houses/polling/poll-summary.ts";
import type { HeldLease } from "../../src/pass/stores/write-heads-store.ts";
import { createWriter, type Rows } from "../../src/pass/writer.ts";
import { createDatabase } from "../support/database.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";

let database: Awaited<ReturnType<typeof createDatabase>>;
let sql: Sql;
let pipeline: Pipeline;

beforeAll(async () => {
  database = await createDatabase();
  sql = connect(database.url, { name: "test", max: 3 });
  pipeline = openPipeline(database.url, { name: "test", max: 2 });
  const houses = ["a", "b", "c", "d"].map((id) => houseEntry({ id, tables: [tableEntry({})] }));
  await applyHouses(sql, houses);
});

afterAll(async () => {
  await pipeline.end({ timeout: 1 });
  await sql.end({ timeout: 1 });
  await database.drop();
});

/** Rows that only require the lease of a house. */
function leaseOf(house: string, epoch = 0n): Rows {
  const lease: HeldLease = { house, shard: 0, epoch };
  return { passes: [], noted: [], lease, end: null };
}

/** Locks the leases of houses until `work` is done. */
async function whileLocked(houses: readonly string[], work: () => Promise<unknown>): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`select from poll_leases where house_id = any(${houses}) for update`;
    await work();
  });
}

async function untilOneWaits(): Promise<void> {
  await lockWaits(sql, 1);
}

it("computes the rows of a write when its transaction begins, however long it waited", async () => {
  const write = createWriter(pipeline);
  const computed: string[] = [];
  const give = (house: string, tableId: number) =>
    write({
      tableIds: [tableId],
      bytes: 0,
      mayWait: true,
      waitsApart: "4s",

      rows: () => (computed.push(house), leaseOf(house)),
    });
  const given: Promise<void>[] = [];
  await whileLocked(["a", "b"], () => {
    given.push(give("a", 1), give("b", 2)); // each has one of the two transactions
    given.push(give("c", 3));
    expect(computed).toEqual(["a", "b"]);
    return Promise.resolve();
  });
  await Promise.all(given);
  // one that waited for its lock for 100 ms is computed again
  expect([...new Set(computed)]).toEqual(["a", "b", "c"]);
});

it("computes the rows again for each attempt, so that a write that is refused keeps no other back", async () => {
  const write = createWriter(pipeline);
  const computed: string[] = [];
  const give = (house: string, tableId: number, epoch = 0n) =>
    write({
      tableIds: [tableId],
      bytes: 0,
      mayWait: true,
      waitsApart: "4s",

      rows: () => (computed.push(house), leaseOf(house, epoch)),
    });
  const given: Promise<void>[] = [];
  await whileLocked(["a", "b"], () => {
    given.push(give("a", 1), give("b", 2));
    given.push(give("c", 3, 7n), give("d", 4)); // share the next transaction
    return Promise.resolve();
  });
  const results = await Promise.allSettled(given);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
  // a and b are computed again if they waited for their lock for 100 ms
  expect(computed.filter((house) => "cd".includes(house))).toEqual(["c", "d", "c", "d"]);
});

it("writes fifty with one that is refused in fifteen transactions", async () => {
  const houses = Array.from({ length: 52 }, (_, n) => houseEntry({ id: `many${n}`, tables: [tableEntry({})] }));
  await applyHouses(sql, houses);
  let transactions = 0;
  const counting = new Proxy(pipeline, {
    get: (target, name: keyof Pipeline) => {
      if (name === "transact") transactions += 1;
      return target[name];
    },
  });
  const write = createWriter(counting);
  const give = (n: number) =>
    write({
      tableIds: [n],
      bytes: 0,
      mayWait: true,
      waitsApart: "4s",

      rows: () => leaseOf(`many${n}`, n === 20 ? 7n : 0n),
    });
  const given = houses.map((_, n) => give(n)); // the first two have the two transactions
  const results = await Promise.allSettled(given);
  expect(results.flatMap(({ status }, n) => (status === "rejected" ? [n] : []))).toEqual([20]);
  expect(transactions).toBe(2 + 15);
});

/** A poll of a new house, under its lease, whose only request failed. */
async function failedPoll(house: string): Promise<Rows> {
  const [table] = await sql<{ id: number; at: string }[]>`
    select t.id, h.updated_at::text as at
    from tables t
    join houses h on h.id = t.house_id
    where h.id = ${house}`;
  if (table === undefined) throw new Error("the house was made before");
  const request = { house, shard: 0, updatedAt: table.at, timeoutMs: 60_000, dueAt: null };
  const lease = await createLeaseTaker(pipeline)(request);
  if (lease === null) throw new Error("the house was never polled");
  const response = {
    kind: "failed",
    status: 503,
    reason: "status",
    detail: "",
    retryAfterMs: null,
    elapsedMs: 5,
  } as const;
  const asked = [{ tableId: table.id, name: "crash/global", path: "/", requestedMs: 0, receivedMs: 5, response }];
  const summary = summarizePoll(asked);
  const next = afterPoll(lease.circuit, summary.outcome, 0);
  return { passes: [], noted: [], lease, end: { lease, asked, feeds: [], summary, storedBytes: 7, next } };
}

it("counts polls once that are written again because the outcome of their shared commit is unknown", async () => {
  const houses = ["s1", "s2", "s3", "s4"];
  const made = houses.map((id) => houseEntry({ id, tables: [tableEntry({})] }));
  await applyHouses(sql, made);
  let [computed, lost] = [0, 0];
  const losing = new Proxy(pipeline, {
    get: (target, name: keyof Pipeline) => {
      if (name !== "transact") return target[name];
      return async (statements: Parameters<Pipeline["transact"]>[0]) => {
        const isShared = computed > 1;
        computed = 0;
        const done = await target.transact(statements);
        if (isShared && lost++ === 0) throw new ConnectionLostError("the connection was lost during the commit");
        return done;
      };
    },
  });
  const write = createWriter(losing);
  const polls = await Promise.all(houses.map(failedPoll));
  const give = (rows: () => Rows, tableId: number) =>
    write({ tableIds: [tableId], bytes: 0, mayWait: true, waitsApart: "4s", rows });
  const given: Promise<void>[] = [];
  await whileLocked(["a", "b"], () => {
    for (const house of ["a", "b"]) given.push(give(() => leaseOf(house), given.length));
    for (const poll of polls) given.push(give(() => ((computed += 1), poll), given.length)); // share the next transaction
    return Promise.resolve();
  });
  await Promise.all(given);
  expect(lost).toBeGreaterThan(0);
  const counted = await sql`
    select p.house_id as house, p.requests, l.bytes_today::integer as bytes
    from polls p
    join poll_leases l using (house_id, shard)
    where p.house_id = any(${houses})
    order by p.house_id`;
  expect(counted).toEqual(houses.map((house) => ({ house, requests: 1, bytes: 7 })));
  expect(await sql`select from poll_failures where house_id = any(${houses})`).toHaveLength(4);
});

it("writes others while those that wait for a lock of another session wait, one after the other", async () => {
  const write = createWriter(pipeline);
  const give = (house: string, tableId: number) =>
    write({ tableIds: [tableId], bytes: 0, mayWait: true, waitsApart: "4s", rows: () => leaseOf(house) });
  const stuck: Promise<void>[] = [];
  const written: string[] = [];
  const done = (house: string) => () => void written.push(house);
  await whileLocked(["a"], async () => {
    for (const tableId of [1, 2, 3]) stuck.push(give("a", tableId).then(done("a")));
    await Promise.all([give("b", 4).then(done("b")), give("c", 5).then(done("c"))]);
    await give("d", 6).then(done("d"));
    await untilOneWaits();
    expect(written).not.toContain("a");
  });
  await Promise.all(stuck);
  expect(written.slice(3)).toEqual(["a", "a", "a"]);
});

it("rejects a write that may not wait for a lock of another session", async () => {
  const write = createWriter(pipeline);
  let computed = 0;
  const rows = () => ((computed += 1), leaseOf("a"));
  await whileLocked(["a"], async () => {
    await expect(write({ tableIds: [1, 2], bytes: 0, mayWait: true, waitsApart: null, rows })).rejects.toThrow(
      "lock timeout",
    );
  });
  expect(computed).toBe(1);
});

it("rejects a write whose rows cannot be computed, and no other", async () => {
  const write = createWriter(pipeline);
  const wrong = write({
    tableIds: [1],
    bytes: 0,
    mayWait: true,
    waitsApart: "4s",

    rows: () => {
      throw new Error("expected rows");
    },
  });
  await expect(wrong).rejects.toThrow("expected rows");
  await write({ tableIds: [2], bytes: 0, mayWait: true, waitsApart: "4s", rows: () => leaseOf("d") });
});

describe("after a transaction that several shared", () => {
  let own: Pipeline;
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] }); // its time stands still
    own = openPipeline(database.url, { name: "test", max: 2 });
  });
  afterEach(async () => {
    vi.useRealTimers();
    await own.end({ timeout: 1 });
  });

  /** A writer that is busy, and a function that gives it a write of a house; `computed` are those that are being written. */
  async function makeBusy() {
    const write = createWriter(own);
    const computed: string[] = [];
    const give = (house: string, { tableIds = [1], bytes = 0, mayWait = true } = {}) =>
      write({ tableIds, bytes, mayWait, waitsApart: "4s", rows: () => (computed.push(house), leaseOf(house)) });
    await Promise.all(["a", "b", "c", "d"].map((house, tableId) => give(house, { tableIds: [tableId] }))); // c, d share one
    computed.length = 0;
    return { give, computed };
  }

  it("holds a write back, and writes it with one that may not wait", async () => {
    const { give, computed } = await makeBusy();
    const held = give("a");
    expect(computed).toEqual([]);
    await Promise.all([give("b", { tableIds: [2], mayWait: false }), held]);
    expect(computed).toEqual(["a", "b"]);
  });

  it("does not wait with a heavy write, which leaves others held back", async () => {
    const { give, computed } = await makeBusy();
    await give("a", { tableIds: [...Array(21).keys()] });
    const held = give("b");
    expect(computed).toEqual(["a"]);
    vi.useRealTimers();
    await held;
    expect(computed).toEqual(["a", "b"]);
  });

  it("does not wait for more than a transaction may have", async () => {
    const { give, computed } = await makeBusy();
    await Promise.all(Array.from({ length: 8 }, (_, tableId) => give("a", { tableIds: [tableId], bytes: 1 << 20 })));
    expect(computed).toHaveLength(8);
  });
});
