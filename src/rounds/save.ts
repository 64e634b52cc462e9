import type { Transaction } from "../db/client.ts";
import { closeUnknownGaps, fillGaps, openGaps, type NewGap } from "./gaps-store.ts";
import { insertRounds } from "./insert-store.ts";
import { numberOf, type RoundSource } from "./round.ts";
import { saveConflicts, saveQuarantine, saveTableStates, type LockedTable, type TableChange } from "./store.ts";
import type { TakenIn } from "./take-in.ts";

/** One answer that was taken in, to be stored; `from` is null where no house sent it. */
export interface Addition {
  table: LockedTable;
  source: RoundSource;
  from: { id: bigint; requestedAt: string; receivedAt: string } | null;
  taken: TakenIn;
  /** Gaps of unknown size that this answer showed whole, by the round after them. */
  shown: readonly { beforeRoundId: string; found: number }[];
}

/** What storing came to. */
export interface Saved {
  /** Gaps that are worth filling. */
  gaps: NewGap[];
  /** Tables whose gaps, conflicts or quarantine changed: their notices are to be told anew. */
  troubled: Set<number>;
}

/**
 * Stores what answers came to, in a transaction that holds the locks of their tables; the tables carry the state and
 * the anchor they end with. Rounds go first: a gap counts as missing only what is not there then.
 */
export async function saveAdditions(
  sql: Transaction,
  tables: readonly LockedTable[],
  additions: readonly Addition[],
  options: { gapsGivenUp: string | null; quarantine: boolean } = { gapsGivenUp: null, quarantine: true },
): Promise<Saved> {
  const groups = additions.map(({ table, source, from, taken, shown }) => ({
    tableId: table.id,
    source,
    payloadId: from?.id ?? null,
    requestedAt: from?.requestedAt ?? null,
    receivedAt: from?.receivedAt ?? null,
    rounds: taken.rounds,
    gaps: taken.gaps,
    conflicts: taken.conflicts,
    refused: options.quarantine ? taken.refused : [],
    shown,
  }));
  await insertRounds(sql, groups);
  const late = additions.flatMap(({ table, taken }) =>
    table.state.roundIds === "opaque"
      ? []
      : taken.rounds.flatMap((round) => {
          const number = round.late ? numberOf(round.roundId) : null;
          return number === null ? [] : [{ tableId: table.id, number }];
        }),
  );
  const filled = await fillGaps(sql, late);
  const opening = groups.flatMap(({ tableId, gaps }) => gaps.map((gap) => ({ ...gap, tableId })));
  const gaps = await openGaps(sql, opening, { givenUp: options.gapsGivenUp });
  const closing = groups.flatMap(({ tableId, shown }) => shown.map((gap) => ({ ...gap, tableId })));
  await closeUnknownGaps(sql, closing);
  await saveConflicts(sql, groups);
  await saveQuarantine(sql, groups);
  await saveTableStates(
    sql,
    tables.map((table) => changeOf(table, additions)),
  );
  const troubled = new Set([
    ...filled,
    ...[...opening, ...closing].map(({ tableId }) => tableId),
    ...groups.flatMap(({ tableId, conflicts, refused }) => (conflicts.length + refused.length > 0 ? [tableId] : [])),
  ]);
  return { gaps, troubled };
}

function changeOf(table: LockedTable, additions: readonly Addition[]): TableChange {
  const own = additions.filter((one) => one.table.id === table.id && one.taken.rounds.length > 0);
  const newest = own.at(-1);
  const polled = own.findLast(({ source }) => source === "poll");
  return {
    tableId: table.id,
    state: table.state,
    anchor: table.anchor,
    added: own.reduce((sum, { taken }) => sum + taken.rounds.length, 0),
    receivedAt: newest?.from?.receivedAt ?? null,
    polledAt: polled?.from?.receivedAt ?? null,
  };
}
