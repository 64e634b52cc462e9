import type { Decided, Made, Refusal } from "../audit/decision.ts";
import type { Transaction } from "../db/client.ts";
import { lockHeads, touchHeads } from "../tables/heads-store.ts";
import { reviseScores } from "../pass/stores/revise-scores-store.ts";
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

/** The author of a decision on a round, and the reason. */
export interface Decision {
  by: string;
  reason: string;
}

/** The result that an operator set for a round; hundredths, null: void. */
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

/** A decision on one round. */
export type Outcome = Decided<{ revised: Revised } & Voided>;

/** Conflicts per decision: their tables are locked meanwhile, some five milliseconds for each. */
export const MOST_CONFLICTS = 200;

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
 * Decides conflicts, all in the same way: the current result is confirmed, or replaced with the other one. Either way a
 * revision records it, and the round itself stays as first received. All or nothing; of two concurrent decisions the
 * second is refused and names the first.
 *
 * Waits for the locks of their tables. Scored forecasts on the rounds become void; open ones become void when they end.
 */
export async function decideConflicts(
  tx: Transaction,
  ids: readonly bigint[],
  { take, by, reason }: Decision & { take: "kept" | "other" },
): Promise<Decided<{ revised: Revised[] } & Voided>> {
  if (ids.length === 0 || ids.length > MOST_CONFLICTS) {
    return { ok: false, problem: `expected 1 to ${MOST_CONFLICTS} conflicts, found ${ids.length}` };
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
  const voided = await apply(tx, tables);
  const [only] = revised;
  if (only !== undefined && revised.length === 1) return { ...oneRevised(only, voided), revised };
  const names = [...new Set(revised.map(({ table }) => table))];
  return {
    ok: true,
    target: `conflicts (${revised.length}) of ${names.join(", ")}`,
    before: revised.map(({ conflictId, table, roundId, from }) => {
      return { conflict: String(conflictId), table, round: roundId, result: resultText(from) };
    }),
    after: revised.map(({ conflictId, to }) => ({ conflict: String(conflictId), result: resultText(to) })),
    message: `${revised.length} conflicts are decided; ${voidedText(voided)}`,
    revised,
    ...voided,
  };
}

function oneRevised(revised: Revised, voided: Voided): Made<{ revised: Revised } & Voided> {
  const { conflictId, roundId, table, from, to } = revised;
  const round = `round ${roundId} of ${table}`;
  const what =
    from === to ? `stays ${resultText(to)}` : `is ${resultText(to)} now, not ${resultText(from)}, in manual runs`;
  return {
    ok: true,
    target: conflictId === null ? round : `conflict ${conflictId}: ${round}`,
    before: resultText(from),
    after: resultText(to),
    message: `${round} ${what}; ${voidedText(voided)}`,
    revised,
    ...voided,
  };
}

function voidedText({ voided, windows }: Voided): string {
  return `${voided} scored forecasts became void, ${windows} of them windows`;
}

function decidedBefore({ id, decidedAt, decidedBy, decision }: KnownConflict, asked: number): string {
  const whole = `conflict ${id} is already decided, at ${decidedAt} by ${decidedBy ?? "unknown"} (${decision ?? "no reason stored"})`;
  return asked > 1 ? `${whole}; nothing was changed` : `${whole}; revise the round if the decision was wrong`;
}

/**
 * Corrects a round manually, or voids it. The stored round is unchanged; manual calibrations learn the correction, and
 * no forecast on the round counts. `seen` is the result that the operator saw: if it has changed since, the correction
 * is refused.
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
  if (seen !== undefined && seen !== resultText(round.hundredths)) {
    return refuse(
      `round ${roundId} of ${table.name} is ${resultText(round.hundredths)} now, not ${seen}; it was revised meanwhile, so check it again`,
    );
  }
  if (round.hundredths === to) {
    return refuse(`round ${roundId} of ${table.name} is ${resultText(to)} already; nothing to revise`);
  }
  const problem = contradiction(round, to);
  if (problem !== null) return refuse(problem);
  const revised = await revise(tx, table, round, { to, by, reason, conflictId: null });
  return oneRevised(revised, await apply(tx, [table]));
}

/** A multiplier for display; `void` for a voided round. */
export function resultText(hundredths: bigint | null): string {
  return hundredths === null ? "void" : multiplierText(hundredths);
}

function refuse(problem: string): Refusal {
  return { ok: false, problem };
}

/** A result that is proven by the house's own hash cannot be corrected; it can be voided. */
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

/** Updates scores and published data of tables after a decision. */
async function apply(tx: Transaction, tables: readonly TableName[]): Promise<Voided> {
  const ids = tables.map(({ id }) => id);
  const touched = { voided: 0, windows: 0 };
  for (const id of ids) {
    const { voided, windows } = await reviseScores(tx, id);
    touched.voided += voided;
    touched.windows += windows;
  }
  await refreshNoticesWithin(tx, ids);
  await touchHeads(tx, ids); // a cached state includes revised results
  return touched;
}
