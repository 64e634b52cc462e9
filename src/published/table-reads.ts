import type { Sql } from "../db/client.ts";
import { listPublished } from "../forecasts/accuracy/published-store.ts";
import type { Log } from "../log.ts";
import { readNewestRounds, readNewRounds, type RoundRow, type Span } from "./rounds-store.ts";
import { readPalettes, readSets, type HeadRow, type WantedSet } from "./store.ts";
import { holdRows, type Holding, type ReadAccuracy } from "./tables.ts";

/** Tables that one statement reads, or whose rounds it reads. */
const TABLES_AT_ONCE = 500;
/** The most rounds that one statement reads when tables are read in full. */
const ROUNDS_AT_ONCE = 4_000;
/**
 * Tables whose accuracy is read per second, the longest stale first: each has up to ninety rows, and takes some 200 µs of
 * processor time. With 10,000 tables of a round per 15 s, accuracy is 100 s old.
 */
export const ACCURACY_AT_ONCE = 100;

/**
 * Reads the forecast sets and rounds of changed tables that `holding` does not have: everything of the `replaced` ones, of
 * the others what is newer. `bufferRounds` limits the rounds of a replaced table.
 */
export function createTableReads(sql: Sql, holding: Holding, bufferRounds: number) {
  const palettes = new Map<number, readonly string[]>();

  /** Reads the palettes of rows that are not known yet; a stored palette never changes. */
  async function knowPalettes(rows: readonly { palette: number }[]): Promise<void> {
    const unknown = new Set(rows.map(({ palette }) => palette).filter((id) => !palettes.has(id)));
    if (unknown.size === 0) return;
    for (const { id, colors } of await readPalettes(sql, [...unknown])) palettes.set(id, colors);
  }

  async function hold(rows: readonly RoundRow[]) {
    await knowPalettes(rows);
    return holdRows(rows, palettes);
  }

  return {
    async sets(heads: readonly HeadRow[], replaced: ReadonlySet<number>) {
      const wanted = heads.flatMap((head) => {
        const after = replaced.has(head.id) ? 0 : (holding.byId.get(head.id)?.setsUpTo ?? 0);
        return visibleSets(head, after);
      });
      const rows = await inBatches(wanted, (some) => readSets(sql, some));
      await knowPalettes(rows);
      return rows.map((row) => ({ ...row, colors: palettes.get(row.palette) ?? [] }));
    },

    async rounds(heads: readonly HeadRow[], replaced: ReadonlySet<number>) {
      const spans = heads.flatMap(({ id, roundIds, resets, lastSeq }): Span[] => {
        const after = replaced.has(id) ? 0 : (holding.byId.get(id)?.lastSeq ?? 0);
        return lastSeq > after ? [{ id, roundIds, resets, after, lastSeq }] : [];
      });
      const [grown, whole] = [spans.filter(({ id }) => !replaced.has(id)), spans.filter(({ id }) => replaced.has(id))];
      const tablesAtOnce = Math.max(1, Math.floor(ROUNDS_AT_ONCE / bufferRounds));
      return [
        ...(await inBatches(grown, async (some) => hold(await readNewRounds(sql, some)))),
        ...(await inBatches(
          whole,
          async (some) => hold(await readNewestRounds(sql, some, bufferRounds)),
          tablesAtOnce,
        )),
      ];
    },
  };
}

/** Reads the accuracy of tables. One with a damaged row is logged once, and returned without rows. */
export function createAccuracyReads(sql: Sql, log: Log) {
  const damagedTables = new Set<number>();

  async function readAccuracy(stale: readonly StaleAccuracy[]): Promise<[number, ReadAccuracy][]> {
    const { rows, damaged } = await listPublished(sql, { tableIds: stale.map(([id]) => id) });
    const reasons = new Map(damaged.map(({ tableId, reason }) => [tableId, reason]));
    const byTable = Map.groupBy(rows, ({ tableId }) => tableId);
    return stale.map(([id, version]) => {
      const reason = reasons.get(id);
      if (reason === undefined) damagedTables.delete(id);
      else if (!damagedTables.has(id)) {
        damagedTables.add(id);
        log.error(`the accuracy of table ${id} is damaged, so the last read is shown: ${reason}`);
      }
      return [id, { version, rows: reason === undefined ? (byTable.get(id) ?? []) : null }];
    });
  }

  return (stale: readonly StaleAccuracy[]) => inBatches(stale, readAccuracy, ACCURACY_AT_ONCE);
}

type StaleAccuracy = readonly [id: number, version: number];

/** The sets of a table after a cutoff that contain something callers may see. */
function visibleSets({ id, openSets, setSeq, newestSeq }: HeadRow, after: number): WantedSet[] {
  const shown = new Set(setSeq === null || setSeq !== newestSeq ? openSets : [...openSets, setSeq]);
  return [...shown].flatMap((cutoffSeq) => (cutoffSeq > after ? [{ tableId: id, cutoffSeq }] : []));
}

/**
 * Whether a table is read whole: it is new, has many new rounds (or, restored from a backup, fewer), or its newest number was
 * set back, which places the rounds above it elsewhere.
 */
export function isReplaced({ id, lastSeq, resets }: HeadRow, { byId }: Holding, bufferRounds: number): boolean {
  const held = byId.get(id);
  if (held === undefined || held.resets !== resets) return true;
  return lastSeq < held.lastSeq || lastSeq - held.lastSeq > bufferRounds;
}

/** Reads rows in batches, by default 500 tables per statement. */
export async function inBatches<Wanted, Row>(
  wanted: readonly Wanted[],
  readRows: (some: readonly Wanted[]) => Promise<Row[]>,
  atOnce = TABLES_AT_ONCE,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (let from = 0; from < wanted.length; from += atOnce) {
    for (const row of await readRows(wanted.slice(from, from + atOnce))) rows.push(row);
  }
  return rows;
}
