import type { Sql, Transaction } from "../../db/client.ts";
import { APART, firstOfEach, togetherBy } from "../../db/together.ts";
import { isWindow } from "../model/features.ts";
import { issueForTables, type IssuedTable } from "./issue-tables.ts";
import { lockTablesToIssue, type HouseToIssue } from "./tables-to-issue-store.ts";

/** What a run did. */
export interface Issued {
  learned: number;
  /** Forecasts of the next color, and windows that were issued beside them. */
  issued: number;
  windows: number;
  /** Tables whose forecasts could already be known, so that none was issued; tried again after the next normalize. */
  refused: number;
  /** Rounds are left to learn. */
  unfinished: boolean;
  /** Tables that neither learned nor issued, since their state or a round of theirs is damaged. */
  damaged: { table: string; reason: string }[];
  /** Tables whose reading stayed as it was, since what it rests on is damaged; it is made anew from the rounds. */
  unread: { table: string; reason: string }[];
}

/** A run ends after so many transactions and leaves the rest of a long import to the next. */
const TRANSACTIONS_PER_RUN = 50;
/** Houses that are looked at by one transaction. */
const HOUSES_AT_ONCE = 50;

/** What one transaction did for a house. */
interface Turn {
  tables: IssuedTable[];
  /** Where the house's next turn goes on, unless this was the last. */
  lastTableId: number;
  isLast: boolean;
}

const issueTogether = togetherBy<Sql, HouseToIssue, Turn>(
  (sql, houses) => sql.begin((tx) => issueForHouses(tx, houses)),
  { items: HOUSES_AT_ONCE, apart: (sql, house) => sql.begin((tx) => issueAlone(tx, house)) },
);

/**
 * Learns the new rounds of a house's tables and issues what follows from them, in transactions of at most 100 tables, with
 * those of other houses that come at the same time.
 *
 * A refusal by the database undoes neither what was learned nor the forecasts of other tables, and a damaged table
 * keeps no other from going on. `committed` is called after each transaction that changed what callers see.
 */
export async function issueForHouse(
  sql: Sql,
  house: string,
  work: {
    signal: AbortSignal;
    committed: () => void;
    /** Told of the answers that brought the rounds after which forecasts were issued, once they are. */
    issued?: (payloadIds: readonly (bigint | null)[]) => void;
  },
): Promise<Issued> {
  const { signal, committed } = work;
  const total: Issued = { learned: 0, issued: 0, windows: 0, refused: 0, unfinished: false, damaged: [], unread: [] };
  let afterTableId = 0;
  for (let turn = 0; turn < TRANSACTIONS_PER_RUN; turn++) {
    signal.throwIfAborted();
    const { tables, lastTableId, isLast } = await issueTogether(sql, { house, afterTableId }, signal);
    const done = tables.reduce((count, one) => count + one.learned + one.issued.length, 0);
    for (const one of tables) add(total, one);
    work.issued?.(tables.flatMap(({ table, issued }) => (issued.length > 0 ? [table.newest?.payloadId ?? null] : [])));
    if (done > 0) committed();
    afterTableId = lastTableId;
    if (!isLast) continue;
    if (!total.unfinished) return total;
    // all tables had their turn: once more from the first, for those with more rounds than one transaction learns
    afterTableId = 0;
    total.unfinished = false;
    total.damaged = [];
    total.unread = [];
  }
  return { ...total, unfinished: true };
}

function add(total: Issued, { table: { name: table }, ...one }: IssuedTable): void {
  const windows = one.issued.filter(({ feature }) => isWindow(feature)).length;
  total.learned += one.learned;
  total.issued += one.issued.length - windows;
  total.windows += windows;
  total.refused += one.isRefused ? 1 : 0;
  total.unfinished ||= one.isUnfinished;
  if (one.damaged !== null) total.damaged.push({ table, reason: one.damaged });
  if (one.unread !== null) total.unread.push({ table, reason: one.unread });
}

/** A turn of each house, but for those of which somebody else holds a table, and which must wait for it. */
async function issueForHouses(tx: Transaction, asked: readonly HouseToIssue[]): Promise<(Turn | typeof APART)[]> {
  const houses = firstOfEach(asked, ({ house }) => house);
  const { tables, busy, cutOff } = await lockTablesToIssue(tx, [...houses.values()], { isPatient: false });
  const done = tables.length === 0 ? [] : await issueForTables(tx, tables);
  return asked.map((one) =>
    busy.has(one.house) || houses.get(one.house) !== one ? APART : turnOf(one, done, cutOff.has(one.house)),
  );
}

async function issueAlone(tx: Transaction, house: HouseToIssue): Promise<Turn> {
  const { tables, cutOff } = await lockTablesToIssue(tx, [house], { isPatient: true });
  return turnOf(house, await issueForTables(tx, tables), cutOff.has(house.house));
}

function turnOf({ house, afterTableId }: HouseToIssue, done: readonly IssuedTable[], isMore: boolean): Turn {
  const tables = done.filter(({ table }) => table.house === house);
  return { tables, lastTableId: tables.at(-1)?.table.tableId ?? afterTableId, isLast: !isMore };
}
