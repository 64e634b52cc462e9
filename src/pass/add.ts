import type { Queryable, Sql, Transaction } from "../db/client.ts";
import { listStored } from "./stores/known-store.ts";
import { lockHeads } from "../tables/heads-store.ts";
import { countTables, loadTable } from "./stores/load-store.ts";
import { pass } from "./compute/pass.ts";
import { loadRest } from "./passes.ts";
import { copyRounds } from "./stores/copy-rounds-store.ts";
import { findTime, maySettle } from "./stores/payload-store.ts";
import { reviseScores } from "./stores/revise-scores-store.ts";
import type { AddedRounds, StoredResponse } from "./compute/response.ts";
import type { CompletePassRows, PassResult, PassState, PassTime } from "./compute/state.ts";
import { stateOf } from "./compute/stored-state.ts";
import { fromDatabase, laterBy } from "./compute/times.ts";
import { passStatements } from "./stores/write-store.ts";

/** Rounds without a poll: an import, a page of history, computed rounds, or a payload that is read again. */
export type Addition = AddedRounds | StoredResponse;

/**
 * Locks a table's head and reads its state. Until the transaction ends, no other process adds rounds to the table.
 *
 * @throws Error if there is no such table
 */
export async function lockState(tx: Transaction, tableId: number): Promise<PassState> {
  await lockHeads(tx, [tableId]);
  return readState(tx, tableId);
}

/**
 * Reads the state of a table without locking: for display, not for writing.
 *
 * @throws Error if there is no such table
 */
export function loadState(sql: Sql, tableId: number): Promise<PassState> {
  return sql.begin("isolation level repeatable read read only", (tx) => readState(tx, tableId));
}

async function readState(tx: Transaction, tableId: number): Promise<PassState> {
  const stored = await loadTable(tx, tableId);
  if (stored === null) throw new Error(`table ${tableId} does not exist`);
  await loadRest(tx, stored);
  return stateOf(stored);
}

/** The time and parameters of a pass that adds rounds: no set follows, since one follows a poll only. */
export async function timeOfAddition(tx: Transaction): Promise<PassTime> {
  const { now } = await findTime(tx);
  return {
    issuedAt: fromDatabase(now),
    tables: await countTables(tx),
    maySettle: await maySettle(tx),
    mayIssue: false,
  };
}

/** The times of passes that follow each other within one transaction; see {@link timeOfAddition}. */
export async function clockOfAdditions(tx: Transaction): Promise<() => PassTime> {
  const start = await timeOfAddition(tx);
  const startedAt = performance.now();
  return () => ({ ...start, issuedAt: laterBy(start.issuedAt, performance.now() - startedAt) });
}

/**
 * Adds rounds by a pass, in a transaction that has the table's head locked: `state` is from {@link lockState} or from the
 * previous addition. The response must include the stored versions of its rounds, see {@link withStored}. `change` may drop
 * rows before they are written. Scores of rounds that now have two results are revised.
 */
export async function addRounds(
  tx: Transaction,
  state: PassState,
  response: Addition,
  change: (rows: CompletePassRows) => Promise<CompletePassRows> = (rows) => Promise.resolve(rows),
): Promise<PassResult> {
  const result = pass(state, response, await timeOfAddition(tx));
  const rows = await change(result.rows);
  await writePass(tx, rows);
  if (rows.conflicts.length === 0) return { ...result, rows };
  const { head } = await reviseScores(tx, rows.tableId);
  const { state: before } = result;
  const revised = { ...before, version: head.version, head: { ...before.head, scoreHash: head.scoreHash } };
  return { ...result, rows, state: revised };
}

/** From this many rounds on they are copied. */
const COPIED_FROM = 500;

/** Writes a pass in its own transaction: locks the head and checks its version first. Many rounds are copied. */
export async function writePass(tx: Transaction, rows: PassResult["rows"]): Promise<void> {
  const isCopied = rows.rounds.length >= COPIED_FROM;
  const [lock, ...others] = passStatements(tx, [isCopied ? { ...rows, rounds: [] } : rows], []);
  await lock;
  if (isCopied) await copyRounds(tx, rows.tableId, rows.rounds);
  for (const statement of others) await statement;
}

/** The response with what is stored of its rounds, since a state forgets older ones, and of `more`. */
export async function withStored<Response extends Addition>(
  tx: Transaction,
  { table: { tableId } }: PassState,
  response: Response,
  more: readonly string[] = [],
): Promise<Response> {
  const { read } = response;
  if (!read.ok) return response;
  const listed = read.items.flatMap((item) => (item.ok ? item.round.roundId : (item.roundId ?? [])));
  return { ...response, read: { ...read, ...(await listStored(tx, tableId, [...new Set([...listed, ...more])])) } };
}

/** Tables of a house with forecasts that ended while settling was paused. */
export async function listTablesToSettle(sql: Queryable, house: string): Promise<{ id: number; name: string }[]> {
  return sql<{ id: number; name: string }[]>`
    select t.id, t.house_id || '/' || t.game || '/' || t.market as name
    from tables t
    join table_heads h on h.table_id = t.id
    where t.house_id = ${house}
      and h.has_ended
    order by t.id`;
}

/** Houses with a table that {@link listTablesToSettle} lists. */
export async function listHousesToSettle(sql: Queryable): Promise<{ house: string }[]> {
  return sql<{ house: string }[]>`
    select distinct t.house_id as house
    from tables t
    join table_heads h on h.table_id = t.id
    where h.has_ended`;
}

/** Settles the forecasts of a table that ended while settling was paused, without waiting for its next response. */
export async function settleEnded(sql: Sql, tableId: number): Promise<number> {
  return sql.begin(async (tx) => {
    const state = await lockState(tx, tableId);
    const { now } = await findTime(tx);
    const nothing: AddedRounds = {
      from: "computed",
      requestedAt: null,
      receivedAt: fromDatabase(now),
      manner: "late",
      payload: null,
      read: { ok: true, items: [], feedOrder: "auto", refusedByAdapter: 0, isPage: false, anchor: null },
    };
    const { rows } = await addRounds(tx, state, nothing);
    return rows.scoreSets.reduce((all, { features }) => all + features.length, 0);
  });
}
