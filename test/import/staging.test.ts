import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  copyToStaging,
  createStaging,
  dropStaging,
  listRepeats,
  listSharedHashes,
  listStagedLines,
  type StagedRow,
  stagingText,
} from "../../src/import/store.ts";
import { openTestDatabase } from "../support/database.ts";

const { sql } = await openTestDatabase();
let staging: string;
beforeEach(async () => {
  staging = await createStaging(sql);
});
afterEach(() => dropStaging(sql, staging));

async function stage(rows: readonly StagedRow[]): Promise<void> {
  await pipeline(Readable.from([stagingText(rows)]), await copyToStaging(sql, staging));
}

function row(line: number, changed: Partial<StagedRow> = {}): StagedRow {
  return { line, roundId: `r${line}`, multiplier: "1.5", occurredAt: null, hash: null, ...changed };
}

describe("staged rows", () => {
  it("are read by their lines in any order, over all blocks; lines without a row are left out", async () => {
    const rows = Array.from({ length: 1_000 }, (_, at) => row(at + 2)).filter(({ line }) => line % 77 !== 0);
    await stage(rows);
    const read = async (lines: number[]) => listStagedLines(sql, staging, Int32Array.from(lines));
    expect(await read(rows.map(({ line }) => line))).toEqual(rows);
    expect(await read([900, 3, 500, 77, 2, 999])).toEqual([900, 3, 500, 2, 999].map((line) => row(line)));
    expect(await read([])).toEqual([]);
  });

  it("keep every character of every field", async () => {
    const rows = [
      row(2, { roundId: 'a\\b\t"c"\n\u{1f4a5}', occurredAt: "2026-11-01 10:00" }),
      row(3, { roundId: null, hash: "\\N" }),
      row(4, { multiplier: null }),
    ];
    await stage(rows);
    expect(await listStagedLines(sql, staging, Int32Array.of(2, 3, 4))).toEqual(rows);
  });

  it("list repeated ids and shared hashes by their lines", async () => {
    const rows = Array.from({ length: 200 }, (_, at) => row(2 * at + 2, { hash: `H${at}` }));
    rows[150] = row(302, { roundId: "r4", hash: "h1" });
    await stage(rows);
    const repeats = [];
    for await (const some of listRepeats(sql, staging)) repeats.push(...some);
    expect(repeats).toEqual([
      { line: 4, round_id: "r4" },
      { line: 302, round_id: "r4" },
    ]);
    rows[151] = row(304, { hash: "h1" });
    await dropStaging(sql, staging);
    staging = await createStaging(sql);
    await stage(rows);
    const shared = [];
    for await (const some of listSharedHashes(sql, staging)) shared.push(...some.map(({ line, hash }) => [line, hash]));
    expect(shared).toEqual([
      [4, "h1"],
      [302, "h1"],
      [304, "h1"],
    ]);
  });
});
