import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import type { RoundRow } from "../../src/pass/compute/rows.ts";
import { copyRounds } from "../../src/pass/stores/copy-rounds-store.ts";
import { createCoreDatabase } from "../support/core-schema.ts";

let database: Awaited<ReturnType<typeof createCoreDatabase>>;
let sql: Sql;
beforeAll(async () => {
  database = await createCoreDatabase();
  sql = connect(database.url, { name: "test", max: 1 });
});
afterAll(async () => {
  await sql.end();
  await database.drop();
});

const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }).filter((one) => !one.includes("\0"));
const marked = fc.oneof(text, fc.constantFrom("\\N", "\\.", "a\tb", "a\nb\r", "\\x00", "NULL"));
const hash = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString("hex"));
const orNull = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null });
const second = fc.integer({ min: 1_700_000_000, max: 1_800_000_000 });
const time = (at: number) => new Date(at * 1_000).toISOString().replace("000Z", "1234560Z");

/** Every combination of values that the table accepts. */
const round = fc
  .record({
    roundId: marked,
    rawValue: marked,
    hundredths: fc.integer({ min: 100, max: 10_000_000_000 }),
    palette: fc.nat(30_000),
    color: fc.nat(7),
    source: fc.integer({ min: 2, max: 3 }),
    at: second,
    isTimed: fc.boolean(),
    occurred: orNull(second),
    afterGap: fc.boolean(),
    late: fc.boolean(),
    verified: orNull(fc.boolean()),
    proof: hash,
    hasProof: fc.boolean(),
    historyHash: hash,
  })
  .map(({ at, isTimed, occurred, proof, hasProof, ...one }) => ({
    ...one,
    requestedAt: isTimed ? time(at - 1) : null,
    receivedAt: time(at),
    absentAt: isTimed ? time(at - 2) : null,
    occurredAt: occurred === null ? null : time(occurred),
    proofHash: hasProof || one.verified !== null ? proof : null,
  }));

describe("rounds that are copied", () => {
  it("are stored as they are, in every column", async () => {
    let tableId = 0;
    const list = fc.uniqueArray(round, { selector: ({ roundId }) => roundId, minLength: 1, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(list, async (given) => {
        tableId += 1;
        const rows: RoundRow[] = given.map((one, at) => {
          const seq = BigInt(at + 1);
          return { ...one, seq, ordinal: one.late ? null : seq };
        });
        await sql.begin((tx) => copyRounds(tx, tableId, rows));
        const stored = await sql<RoundRow[]>`
          select
            seq, ordinal, round_id as "roundId", hundredths::float8 as hundredths, raw_value as "rawValue", palette, color,
            source, utc_text(requested_at) as "requestedAt", utc_text(received_at) as "receivedAt",
            utc_text(occurred_at) as "occurredAt", utc_text(absent_at) as "absentAt", after_gap as "afterGap", late, verified,
            encode(proof_hash, 'hex') as "proofHash", encode(history_hash, 'hex') as "historyHash"
          from rounds
          where table_id = ${tableId}
          order by seq`;
        expect(stored).toEqual(rows);
      }),
      { numRuns: 60 },
    );
  });
});
