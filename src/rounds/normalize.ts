import type { Sql, Transaction } from "../db/client.ts";
import type { Prover } from "../houses/fairness/prove.ts";
import type { House } from "../houses/house.ts";
import { noteRefusedAnswer } from "../houses/poll-store.ts";
import { gapsShownWhole } from "./gaps.ts";
import { listUnknownGaps } from "./gaps-store.ts";
import { listOpenNotices, publishTables, refreshNotices, saveNotices } from "./notices-store.ts";
import { NoticeDesk } from "./notice-desk.ts";
import { formatSentence, idsSentence, stuckSentence, unreadableSentence } from "./notices.ts";
import { listStillUnread, listUnread, markPayloads, type ReadPayload, type UnreadPayload } from "./payload-store.ts";
import { idsOf, prepareBatch, type Prepared, type PreparedBatch } from "./prepare.ts";
import { isOwnFault, ownFault } from "./read-answer.ts";
import type { KnownRound } from "./round.ts";
import { saveAdditions, type Addition } from "./save.ts";
import { listHeldBack, listKnown, lockTables, type LockedTable, type StoredAnchor } from "./store.ts";
import { takeIn, type HeldBack, type TakenIn } from "./take-in.ts";

/** What one batch of answers came to. */
export interface NormalizedBatch {
  payloads: number;
  refused: number;
  rounds: number;
  late: number;
  quarantined: number;
  conflicts: number;
  /** Gaps that were opened and are worth filling. */
  gaps: bigint[];
  published: number;
  /** Some item failed its proof. */
  proofFailed: boolean;
}

/**
 * Takes in the oldest unread answers of a house, at most a batch; null where none is unread.
 *
 * Reading and proving come first and hold no lock; then one transaction takes the tables in id order, gives each round
 * its place and writes everything. An answer that breaks the transaction is refused alone, and the others go on.
 */
export async function normalizeBatch(
  sql: Sql,
  house: House,
  prover: Prover,
  signal: AbortSignal,
): Promise<NormalizedBatch | null> {
  const payloads = await listUnread(sql, house.id);
  if (payloads.length === 0) return null;
  const prepared = await prepareBatch(sql, house, prover, payloads, signal);
  try {
    return await sql.begin((transaction) => storeBatch(transaction, prepared, new Map()));
  } catch (error) {
    if (!isOwnFault(error)) throw error;
    return storeEach(sql, prepared, error, signal);
  }
}

async function storeEach(
  sql: Sql,
  batch: PreparedBatch,
  first: unknown,
  signal: AbortSignal,
): Promise<NormalizedBatch> {
  const { anchors } = batch;
  const sum: NormalizedBatch = { ...EMPTY, gaps: [] };
  const useless = new Map<number, boolean>();
  for (const answer of batch.answers) {
    signal.throwIfAborted();
    try {
      if (batch.answers.length === 1) throw first;
      add(sum, await sql.begin((transaction) => storeBatch(transaction, { anchors, answers: [answer] }, useless)));
    } catch (error) {
      if (!isOwnFault(error)) throw error;
      const refused: Prepared = { ok: false, payload: answer.payload, reason: ownFault(error) };
      add(sum, await sql.begin((transaction) => storeBatch(transaction, { anchors, answers: [refused] }, useless)));
    }
  }
  return sum;
}

const EMPTY: Omit<NormalizedBatch, "gaps"> = {
  payloads: 0,
  refused: 0,
  rounds: 0,
  late: 0,
  quarantined: 0,
  conflicts: 0,
  published: 0,
  proofFailed: false,
};

function add(sum: NormalizedBatch, one: NormalizedBatch): void {
  sum.payloads += one.payloads;
  sum.refused += one.refused;
  sum.rounds += one.rounds;
  sum.late += one.late;
  sum.quarantined += one.quarantined;
  sum.conflicts += one.conflicts;
  sum.gaps.push(...one.gaps);
  sum.published += one.published;
  sum.proofFailed ||= one.proofFailed;
}

/** Stores a batch; `useless` tells of each table whether the answer before told nothing, and is kept up to date. */
async function storeBatch(
  sql: Transaction,
  { answers, anchors }: PreparedBatch,
  useless: Map<number, boolean>,
): Promise<NormalizedBatch> {
  const locked = await lockTables(sql, [...new Set(answers.map(({ payload }) => payload.tableId))]);
  const unread = await listStillUnread(
    sql,
    answers.map(({ payload }) => payload),
  );
  const open = answers.filter(({ payload }) => unread.has(payload.id));
  const tables = new Map(locked.map((table) => [table.id, table]));
  const ids = open.flatMap((answer) => (answer.ok ? idsOf(answer.payload.tableId, answer.items) : []));
  const known = await listKnown(sql, ids);
  const heldBack = await listHeldBack(sql, ids);
  const unknownGaps = await listUnknownGaps(
    sql,
    locked.flatMap(({ id, state }) => (state.roundIds === "opaque" ? [id] : [])),
  );
  const notices = new NoticeDesk(await listOpenNotices(sql, [...tables.keys()]));
  const additions: Addition[] = [];
  const mended: number[] = [];
  const marks: ReadPayload[] = [];
  for (const answer of open) {
    const { payload } = answer;
    const table = tables.get(payload.tableId);
    if (table === undefined) throw new Error(`the table ${payload.tableId} was not locked`);
    const followsUseless = useless.get(table.id) ?? payload.followsUseless === true;
    useless.set(table.id, !answer.ok || answer.items.length === 0);
    if (!answer.ok) {
      await noteRefusedAnswer(sql, { tableId: table.id, payloadId: payload.id, sha256: payload.sha256 });
      notices.set(table.id, "format", payload.now, unreadableSentence);
      marks.push(markOf(payload, { refusedReason: answer.reason }));
      continue;
    }
    const ofTable = { known: childOf(known, table.id), heldBack: childOf(heldBack, table.id) };
    const taken = takeIn(
      { ...table.state, feedOrder: answer.feedOrder },
      { items: answer.items, absentAt: followsUseless ? null : payload.previousRequestedAt, manner: "poll" },
      ofTable,
    );
    if (taken.rounds.some(({ roundId }) => ofTable.heldBack.has(roundId))) mended.push(table.id);
    remember(taken, payload, ofTable);
    table.state = taken.state;
    const gaps = unknownGaps.filter(({ tableId }) => tableId === table.id);
    unknownGaps.push(...taken.gaps.flatMap((gap) => (gap.range === null ? [{ ...gap, tableId: table.id }] : [])));
    additions.push({ table, source: "poll", from: payload, taken, shown: gapsShownWhole(taken.sequence, gaps) });
    marks.push(
      markOf(payload, {
        items: answer.items.length,
        newRounds: taken.rounds.length,
        quarantined: taken.refused.length,
      }),
    );
    tell(notices, table, payload, answer, taken);
  }
  for (const [id, anchor] of anchors) {
    const table = tables.get(id);
    if (table !== undefined && isNewer(anchor, table.anchor)) table.anchor = anchor;
  }
  const { gaps, troubled } = await saveAdditions(sql, locked, additions);
  await markPayloads(sql, marks);
  await saveNotices(sql, notices.changes());
  await refreshNotices(sql, [...new Set([...troubled, ...mended])]);
  const published = await publishTables(sql, [...tables.keys()]);
  const sum = (count: (taken: TakenIn) => number) => additions.reduce((total, { taken }) => total + count(taken), 0);
  return {
    payloads: open.length,
    refused: open.filter(({ ok }) => !ok).length,
    rounds: sum(({ rounds }) => rounds.length),
    late: sum(({ rounds }) => rounds.filter(({ late }) => late).length),
    quarantined: sum(({ refused }) => refused.length),
    conflicts: sum(({ conflicts }) => conflicts.length),
    gaps: gaps.map(({ id }) => id),
    published,
    proofFailed: additions.some(({ taken }) => taken.refused.some(({ code }) => code === "proof_mismatch")),
  };
}

function markOf(payload: UnreadPayload, result: Partial<ReadPayload>): ReadPayload {
  const { id, receivedAt } = payload;
  return { id, receivedAt, refusedReason: null, items: null, newRounds: null, quarantined: null, ...result };
}

function childOf<Value>(all: Map<number, Map<string, Value>>, tableId: number): Map<string, Value> {
  const own = all.get(tableId) ?? new Map<string, Value>();
  all.set(tableId, own);
  return own;
}

/** What an answer brought is known to those after it in the same batch. */
function remember(
  taken: TakenIn,
  payload: UnreadPayload,
  { known, heldBack }: { known: Map<string, KnownRound>; heldBack: Map<string, HeldBack> },
): void {
  for (const { roundId, seq, hundredths, late, verified, proofHash } of taken.rounds) {
    known.set(roundId, { seq, hundredths, late, verified, proofHash, payloadId: String(payload.id) });
  }
  for (const { roundId, code } of taken.refused) {
    if (roundId === null) continue;
    const held = heldBack.get(roundId) ?? { stuck: false, released: false };
    heldBack.set(roundId, { ...held, stuck: held.stuck || code === "stuck_feed" });
  }
}

/** An anchor of other settings replaces the stored one, of the same ones only a newer does. */
function isNewer(anchor: StoredAnchor, stored: StoredAnchor | null): boolean {
  return stored === null || anchor.of !== stored.of || anchor.number > stored.number;
}

/** The notices that one answer opens or closes by itself. */
function tell(
  notices: NoticeDesk,
  table: LockedTable,
  payload: UnreadPayload,
  answer: Prepared & { ok: true },
  taken: TakenIn,
): void {
  const { items, refusedByAdapter } = answer;
  const format = formatSentence(items.length, refusedByAdapter, payload.now);
  if (format === null) notices.close(table.id, "format");
  else if (format !== undefined) {
    notices.set(
      table.id,
      "format",
      payload.now,
      (since) => formatSentence(items.length, refusedByAdapter, since) ?? "",
    );
  }
  const { stuck, backwards, state } = taken;
  if (stuck?.kind === "begun") notices.set(table.id, "stuck", payload.now, (since) => stuckSentence(stuck, since));
  if (stuck?.kind === "over") notices.close(table.id, "stuck");
  const newest = state.newestNumber;
  if (backwards !== null && newest !== null) {
    notices.set(table.id, "ids", payload.now, (since) => idsSentence(backwards, newest, since));
  }
  if (taken.onTime > 0) notices.close(table.id, "ids");
  if (taken.rounds.length > 0) notices.close(table.id, "stalled");
}
