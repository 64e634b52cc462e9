/** A page of a list; pages are counted from 1. */
export interface PageWanted {
  page: number;
  perPage: number;
}

/** Rows of a page, the number of this page, and the total of rows on all pages. */
export interface ListPage<Row> {
  rows: Row[];
  page: number;
  total: number;
}

/**
 * Reads a page of a query whose rows carry `total` (`count(*) over ()`). A page after the last one has no row that carries
 * it, so the last page is returned instead.
 */
export async function readListPage<Row>(
  { page, perPage }: PageWanted,
  read: (range: { limit: number; offset: number }) => Promise<(Row & { total: number })[]>,
): Promise<ListPage<Row>> {
  const rows = await read({ limit: perPage, offset: (page - 1) * perPage });
  if (rows.length === 0 && page > 1) {
    const [first] = await read({ limit: 1, offset: 0 });
    const last = Math.max(1, Math.ceil((first?.total ?? 0) / perPage));
    // rows may be deleted meanwhile, so that page is read as any other; it ends at page 1
    return readListPage({ page: Math.min(last, page - 1), perPage }, read);
  }
  const plain = rows.map((found) => {
    const { total: _, ...row } = found;
    return row as Row;
  });
  return { rows: plain, page, total: rows[0]?.total ?? 0 };
}
