import { describe, expect, it } from "vitest";
import { readListPage } from "../../src/db/list-page.ts";
import { openTestDatabase } from "../support/database.ts";

const { sql } = await openTestDatabase({ max: 1 });

/** A page of four of the numbers from 1. */
function read(page: number, upTo: number) {
  return readListPage<{ n: number }>(
    { page, perPage: 4 },
    ({ limit, offset }) => sql<{ n: number; total: number }[]>`
      select n, count(*) over ()::integer as total
      from generate_series(1, ${upTo}::integer) n
      order by n
      limit ${limit}
      offset ${offset}`,
  );
}

describe("a page of a list", () => {
  it("has its rows, its number and the total of all pages", async () => {
    expect(await read(2, 9)).toEqual({ rows: [{ n: 5 }, { n: 6 }, { n: 7 }, { n: 8 }], page: 2, total: 9 });
  });

  it("that is past the last one is the last one", async () => {
    expect(await read(4, 9)).toEqual({ rows: [{ n: 9 }], page: 3, total: 9 });
    expect(await read(100_000, 8)).toMatchObject({ page: 2, total: 8 });
  });

  it("of an empty list is the first, without rows", async () => {
    expect(await read(7, 0)).toEqual({ rows: [], page: 1, total: 0 });
  });
});
