import { beforeAll, describe, expect, it } from "vitest";
import * as kinds from "../../src/pass/columns.ts";
import { plainArray } from "../../src/pass/stores/arrays.ts";
import { openTestDatabase } from "../support/database.ts";

const { sql } = await openTestDatabase({ max: 1 });
beforeAll(async () => {
  await sql`
    create temporary table sample (
      table_id integer primary key, small smallint, last_seq bigint, hundredths bigint, is_late boolean, round_id text,
      code text, seen_at timestamptz, payload_sha256 bytea, history_hash bytea, p_ppm integer[], open_sets bigint[],
      refs jsonb
    )`;
});

const { arrayOf, optional, plain } = kinds;
const SAMPLES = kinds.columnsOf({
  small: optional(kinds.smallint),
  lastSeq: kinds.bigint,
  hundredths: optional(kinds.bigintAsNumber),
  isLate: optional(kinds.boolean),
  roundId: optional(kinds.text),
  code: plain<"a" | "b">("text"),
  seenAt: optional(kinds.time),
  payloadSha256: optional(kinds.hex),
  historyHash: kinds.hash,
  pPpm: arrayOf<number | null>("integer"),
  openSets: arrayOf<bigint>("bigint"),
  refs: kinds.json,
});
type SampleRow = Parameters<typeof SAMPLES.rows>[0]["rows"][number];

const FULL: SampleRow = {
  small: 7,
  lastSeq: 2n ** 60n,
  hundredths: 10_000_000_000,
  isLate: false,
  roundId: 'a "quoted", {braced} \\ NULL',
  code: "b",
  seenAt: "2026-11-21T04:00:12.1234560Z",
  payloadSha256: "00ff",
  historyHash: "ab".repeat(32),
  pPpm: [1, null, -1],
  openSets: [1n, 2n ** 60n],
  refs: { text: 'a "quoted" text', list: [1, null] },
};
const EMPTY: SampleRow = {
  small: null,
  lastSeq: 0n,
  hundredths: null,
  isLate: null,
  roundId: null,
  code: "a",
  seenAt: null,
  payloadSha256: null,
  historyHash: "cd".repeat(32),
  pPpm: [],
  openSets: [],
  refs: {},
};

async function listSamples(): Promise<SampleRow[]> {
  const rows = await sql<kinds.Selected<SampleRow>[]>`
    select ${SAMPLES.selectFrom("s")}
    from sample s
    order by s.table_id`;
  return rows.map(SAMPLES.parse);
}

describe("the columns of a row", () => {
  it("insert rows that are read as they were written", async () => {
    const written = SAMPLES.rows({ tableIds: plainArray([1, 2]), rows: [FULL, EMPTY] });
    await sql`insert into sample (table_id, ${SAMPLES.names}) ${written}`;
    expect(await listSamples()).toEqual([FULL, EMPTY]);
  });

  it("update each row with its own values", async () => {
    const written = SAMPLES.rows({ tableIds: plainArray([1, 2]), rows: [EMPTY, FULL] });
    await sql`
      update sample s
      set ${SAMPLES.assignFrom("n")}
      from (${written}) n
      where s.table_id = n.table_id`;
    expect(await listSamples()).toEqual([EMPTY, FULL]);
  });
});
