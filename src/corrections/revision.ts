import type { Transaction } from "../db/client.ts";
import { lockHeads, touchHeads } from "../tables/heads-store.ts";
import { reviseScores } from "../pass/revise-scores-store.ts";
import { colorOf } from "../rounds/colors.ts";
import { refreshNoticesWithin } from "../rounds/notices/notices-store.ts";
import {
  closeConflicts,
  findStanding,
  listConflictsToDecide,
  saveRevision,
  type KnownConflict,
  type NewRevision,
  type Standing,
} from "./revision-store.ts";
import { multiplierText } from "../rounds/round.ts";

interface TableName {
  id: number;
  name: string;
}

/** Who decides something of a round, and why. */
export interface Decision {
  by: string;
  reason: string;
}

/** What a person made of a round; hundredths, null: void. */
export interface Revised {
  revisionId: bigint;
  conflictId: bigint | null;
  tableId: number;
  house: string;
  table: string;
  roundId: string;
  from: bigint | null;
  to: bigint | null;
}

/** Forecasts that a decision voided, and how many of them are windows. */
export interface Voided {
  voided: number;
  windows: number;
}

/** A decision that was taken, or why it was not. */
export type Outcome = ({ ok: true; revised: Revised } & Voided) | { ok: false; problem: string };

/** Conflicts in one decision: their tables take in nothing while it is made, some five milliseconds for each. */
export const MOST_CONFLICTS = 200;

/** Decisions that were taken together, or why none was. */
export type Outcomes = ({ ok: true; revised: Revised[] } & Voided) | { ok: false; problem: string };

/** Decides one conflict, see {@link decideConflicts}. */
export async function decideConflict(
  tx: Transaction,
  id: bigint,
  decision: Decision & { take: "kept" | "other" },
): Promise<Outcome> {
  const outcome = await decideConflicts(tx, [id], decision);
  if (!outcome.ok) return outcome;
  const [revised] = outcome.revised;
  return revised === undefined ? refuse(`there is no conflict ${id}`) : { ...outcome, revised };
}

/**
 * Decides conflicts, all in the same way: what stands is kept, or the other result takes its place. Either way a revision
 * says so, and the round itself stays as it came first. All of them or none; of two who decide the same one at once the
 * second is told who was first.
 *
 * Waits for the locks of their tables. Scored forecasts on the rounds become void; open ones do when they end.
 */
export async function decideConflicts(
  tx: Transaction,
  ids: readonly bigint[],
  { take, by, reason }: Decision & { take: "kept" | "other" },
): Promise<Outcomes> {
  if (ids.length === 0 || ids.length > MOST_CONFLICTS) {
    return { ok: false, problem: `expected 1 to ${MOST_CONFLICTS} conflicts, came ${ids.length}` };
  }
  const known = await listConflictsToDecide(tx, ids);
  const tables = await lockHeads(tx, [...new Set(known.map(({ tableId }) => tableId))]);
  const conflicts = await listConflictsToDecide(tx, ids);
  const missing = ids.find((id) => !conflicts.some((conflict) => conflict.id === id));
  if (missing !== undefined) return { ok: false, problem: `there is no conflict ${missing}` };
  const decided = conflicts.find(({ decidedAt }) => decidedAt !== null);
  if (decided !== undefined) return { ok: false, problem: decidedBefore(decided, ids.length) };
  const wanted: { table: TableName; round: Standing; to: bigint | null; conflictId: bigint }[] = [];
  const standing = new Map<string, bigint | null>();
  for (const { id: conflictId, tableId, roundId, other } of conflicts) {
    const table = tables.find(({ id }) => id === tableId);
    const round = table === undefined ? null : await findStanding(tx, tableId, roundId);
    if (table === undefined || round === null) {
      return { ok: false, problem: `the round ${roundId} of conflict ${conflictId} is not stored; run verify` };
    }
    const key = `${tableId} ${roundId}`;
    if (take === "other" && standing.has(key)) {
      const problem = `round ${roundId} of ${table.name} has several other results among these; decide its conflicts one by one`;
      return { ok: false, problem };
    }
    const to = take === "kept" ? round.hundredths : other;
    const problem = take === "other" ? contradiction(round, to) : null;
    if (problem !== null) return { ok: false, problem };
    standing.set(key, to);
    wanted.push({ table, round, to, conflictId });
  }
  await closeConflicts(tx, ids);
  const revised: Revised[] = [];
  for (const { table, round, ...rest } of wanted) revised.push(await revise(tx, table, round, { ...rest, by, reason }));
  return { ok: true, revised, ...(await apply(tx, tables)) };
}

function decidedBefore({ id, decidedAt, decidedBy, decision }: KnownConflict, asked: number): string {
  const whole = `conflict ${id} was decided already, at ${decidedAt} by ${decidedBy ?? "somebody"} (${decision ?? "no reason kept"})`;
  return asked > 1 ? `${whole}; nothing was changed` : `${whole}; revise the round if that was wrong`;
}

/**
 * Corrects a round manually, or declares it void. Nothing that is stored of it changes; what a run manually learns does,
 * and no forecast on it counts. `seen` is what stood when the person looked: where it is something else by now, nothing
 * is done and the person is told.
 *
 * Waits for the table's lock.
 */
export async function reviseRound(
  tx: Transaction,
  { tableId, roundId }: { tableId: number; roundId: string },
  { to, by, reason, seen }: Decision & { to: bigint | null; seen?: string },
): Promise<Outcome> {
  const [table] = await lockHeads(tx, [tableId]);
  if (table === undefined) return refuse(`there is no table ${tableId}`);
  const round = await findStanding(tx, tableId, roundId);
  if (round === null) return refuse(`there is no round ${roundId} in ${table.name}`);
  if (seen !== undefined && seen !== standingText(round.hundredths)) {
    return refuse(
      `round ${roundId} of ${table.name} stands at ${standingText(round.hundredths)} now and not at ${seen}; someone revised it meanwhile, look again`,
    );
  }
  if (round.hundredths === to) {
    return refuse(`round ${roundId} of ${table.name} stands at ${standingText(to)} already; nothing to revise`);
  }
  const problem = contradiction(round, to);
  if (problem !== null) return refuse(problem);
  const revised = await revise(tx, table, round, { to, by, reason, conflictId: null });
  return { ok: true, revised, ...(await apply(tx, [table])) };
}

/** A multiplier as people write it; `void` for a round that was declared void. */
export function standingText(hundredths: bigint | null): string {
  return hundredths === null ? "void" : multiplierText(hundredths);
}

function refuse(problem: string): Outcome {
  return { ok: false, problem };
}

/** What is proven by the house's own hash cannot have been something else; it can be declared void. */
function contradiction({ roundId, verified, first }: Standing, to: bigint | null): string | null {
  if (verified !== true || to === null || to === first) return null;
  return `round ${roundId} is proven to be ${multiplierText(first)} by the hash its house had committed to; another result cannot be right`;
}

async function revise(
  tx: Transaction,
  table: TableName,
  round: Standing,
  { to, by, reason, conflictId }: Decision & { to: bigint | null; conflictId: bigint | null },
): Promise<Revised> {
  const revision: NewRevision = {
    tableId: table.id,
    table: table.name,
    seq: round.seq,
    roundId: round.roundId,
    from: round.hundredths,
    to,
    color: to === null ? null : colorOf(Number(to), round.bands),
    reason,
    by,
    conflictId,
  };
  const revisionId = await saveRevision(tx, revision);
  const house = table.name.split("/")[0] ?? "";
  const { roundId, hundredths: from } = round;
  return { revisionId, conflictId, tableId: table.id, house, table: table.name, roundId, from, to };
}

/** Makes scores and what callers read of tables follow what was decided. */
async function apply(tx: Transaction, tables: readonly TableName[]): Promise<Voided> {
  const ids = tables.map(({ id }) => id);
  const touched = { voided: 0, windows: 0 };
  for (const id of ids) {
    const { voided, windows } = await reviseScores(tx, id);
    touched.voided += voided;
    touched.windows += windows;
  }
  await refreshNoticesWithin(tx, ids);
  await touchHeads(tx, ids); // a cached state holds what was revised
  return touched;
}
