import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AuditEntry, toJson } from "../../src/audit/entry.ts";
import { appendAudit, audited, hasAudit, listAuditFacets, searchAudit } from "../../src/audit/store.ts";
import { verifyAudit } from "../../src/audit/verify.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { createDatabase } from "../support/database.ts";

let sql: Sql;
let drop: () => Promise<void>;
beforeAll(async () => {
  const database = await createDatabase();
  sql = connect(database.url, { name: "test", max: 8 });
  drop = database.drop;
});
afterAll(async () => {
  await sql.end();
  await drop();
});

const nothing = { actor: "", action: "", target: "", text: "", from: null, to: null };

function entry(changed: Partial<AuditEntry> = {}): AuditEntry {
  return {
    surface: "ops",
    actor: "ann@example.com",
    role: "operator",
    action: "house.pause",
    target: "house alpha",
    before: null,
    after: { paused: true },
    reason: "they asked us to wait",
    requestId: "req_1",
    address: "203.0.113.9",
    ...changed,
  };
}

const add = (changed?: Partial<AuditEntry>) => sql.begin((tx) => appendAudit(tx, entry(changed)));
const all = async () => (await searchAudit(sql, nothing, { before: null, limit: 1_000 })).entries;

/** Does what only somebody who owns the database can, and undoes it. */
async function tampering(how: (tx: Parameters<typeof appendAudit>[0]) => Promise<unknown>, work: () => Promise<void>) {
  await sql`create table kept as select * from audit_log`;
  const [head] = await sql<{ seq: bigint; hash: string }[]>`select seq, hash from audit_head`;
  await sql.begin(async (tx) => {
    await tx`alter table audit_log disable trigger user`;
    await how(tx);
    await tx`alter table audit_log enable trigger user`;
  });
  try {
    await work();
  } finally {
    await sql.begin(async (tx) => {
      await tx`alter table audit_log disable trigger user`;
      await tx`truncate audit_log`;
      await tx`insert into audit_log select * from kept`;
      await tx`alter table audit_log enable trigger user`;
      await tx`drop table kept`;
      await tx`update audit_head set seq = ${head!.seq}, hash = ${head!.hash}`;
    });
  }
}

describe("[V16] the audit log", () => {
  it("keeps what was done, each entry chained to the one before it", async () => {
    await add({ action: "first" });
    await add({
      before: { at: new Date(0), n: 12n, text: "ümlaut \u0000 \uD800 ' \" \\ 1e400", gone: undefined, f: 0.1 },
      after: [1e21, -0],
    });
    await add({
      surface: "cli",
      role: null,
      actor: "root",
      requestId: null,
      address: null,
      reason: null,
      before: "x",
      after: 3,
    });
    const { entries, failure } = await verifyAudit(sql);
    expect({ entries, failure }).toEqual({ entries: 3, failure: null });
    const [last, middle] = await all();
    expect(last).toMatchObject({ seq: 3n, surface: "cli", actor: "root", role: null, before: "x", after: 3 });
    expect(middle?.before).toEqual({
      at: "1970-01-01T00:00:00.000Z",
      n: "12",
      text: "ümlaut \uFFFD \uFFFD ' \" \\ 1e400",
      f: 0.1,
    });
  });

  it("is one chain if many add to it concurrently, and loses an entry only with its action", async () => {
    const before = (await verifyAudit(sql)).entries;
    const outcomes = await Promise.allSettled(
      Array.from({ length: 30 }, (_, n) =>
        audited(sql, async () => {
          await Promise.resolve();
          if (n % 3 === 0) throw new Error("not done after all");
          return { result: n, entry: entry({ target: `house h${n}` }) };
        }),
      ),
    );
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(20);
    expect(await verifyAudit(sql)).toEqual({ entries: before + 20, failure: null });
  });

  it("keeps a target that is longer than an index entry", async () => {
    const target = randomBytes(5_000).toString("hex");
    await add({ target });
    expect((await all())[0]).toMatchObject({ target });
  });

  it("is not changed, shortened or emptied", async () => {
    await expect(sql`update audit_log set reason = 'another' where seq = 1`).rejects.toThrow("only ever added to");
    await expect(sql`delete from audit_log where seq = 1`).rejects.toThrow("only ever added to");
    await expect(sql`truncate audit_log`).rejects.toThrow("only ever added to");
    await expect(sql`delete from audit_head`).rejects.toThrow("only ever added to");
    await expect(sql`truncate audit_head`).rejects.toThrow("only ever added to");
  });

  it.each(["at", "surface", "actor", "role", "action", "target", "before", "after", "reason", "request_id", "address"])(
    "tells of a changed %s",
    async (column) => {
      const values: Record<string, string> = {
        at: "2020-01-01T00:00:00Z",
        surface: "system",
        before: "{}",
        after: "null",
        role: "admin",
      };
      await tampering(
        async (tx) => {
          await tx`alter table audit_log drop constraint only_ops_has_roles`;
          await tx`update audit_log set ${tx(column)} = ${tx.unsafe(`'${values[column] ?? "another"}'`)} where seq = 2`;
        },
        async () => expect((await verifyAudit(sql)).failure?.id).toBe("2"),
      );
      await sql`alter table audit_log add constraint only_ops_has_roles check ((surface = 'ops') = (role is not null))`;
    },
  );

  it("detects a removed entry, an entry with a recomputed hash, and a shortened end", async () => {
    const { entries } = await verifyAudit(sql);
    await tampering(
      (tx) => tx`delete from audit_log where seq = 2`,
      async () => expect((await verifyAudit(sql)).failure).toEqual({ id: "2", expected: "entry 2", found: "entry 3" }),
    );
    await tampering(
      (tx) => tx`update audit_log set hash = repeat('a', 64) where seq = 2`,
      async () => expect((await verifyAudit(sql)).failure?.id).toBe("2"),
    );
    await tampering(
      (tx) => tx`delete from audit_log where seq = ${entries}`,
      async () => expect((await verifyAudit(sql)).failure?.expected).toBe(`entry ${entries}, the log's end`),
    );
  });

  it("is searched by who, what, to what, any text and time, page by page, newest first", async () => {
    await add({ actor: "Bob@example.com", action: "queue.pause", target: "queue 50%_off", requestId: "req_bob" });
    const find = async (search: object) => {
      const { entries } = await searchAudit(sql, { ...nothing, ...search }, { before: null, limit: 5 });
      return { total: entries.length, first: entries[0]?.action };
    };
    expect(await find({ actor: "bob@" })).toEqual({ total: 1, first: "queue.pause" });
    expect(await find({ action: "queue." })).toEqual({ total: 1, first: "queue.pause" });
    expect(await find({ action: "queue" })).toEqual({ total: 0, first: undefined });
    expect(await find({ target: "50%_" })).toEqual({ total: 1, first: "queue.pause" });
    expect(await find({ target: "5_%" })).toEqual({ total: 0, first: undefined });
    expect(await find({ target: "QUEUE 50%_off", whole: true })).toEqual({ total: 1, first: "queue.pause" });
    expect(await find({ target: "50%_off", whole: true })).toEqual({ total: 0, first: undefined });
    expect(await find({ target: "queue 50_off", whole: true })).toEqual({ total: 0, first: undefined });
    expect(await find({ action: "queue.", target: "", whole: true })).toEqual({ total: 1, first: "queue.pause" });
    expect(await find({ text: "req_bob" })).toEqual({ total: 1, first: "queue.pause" });
    expect(await find({ from: new Date(Date.now() + 60_000) })).toEqual({ total: 0, first: undefined });
    const whole = (await all()).map(({ seq }) => seq);
    const pages: bigint[] = [];
    for (let before: bigint | null = null; ;) {
      const { entries, next } = await searchAudit(sql, nothing, { before, limit: 3 });
      expect(entries.length).toBeLessThanOrEqual(3);
      pages.push(...entries.map(({ seq }) => seq));
      if (next === null) break;
      before = next;
    }
    expect(pages).toEqual(whole);
    const facets = await listAuditFacets(sql);
    expect(facets.actors).toEqual([...new Set((await all()).map(({ actor }) => actor))].toSorted());
    expect(facets.actions).toEqual([...new Set((await all()).map(({ action }) => action))].toSorted());
    expect([await hasAudit(sql, "req_bob"), await hasAudit(sql, "req_nobody")]).toEqual([true, false]);
  });

  it("writes any value as JSON", () => {
    expect(toJson({ at: new Date(0), n: 12n, gone: undefined })).toEqual({ at: "1970-01-01T00:00:00.000Z", n: "12" });
    expect(toJson(undefined)).toBeNull();
  });
});
