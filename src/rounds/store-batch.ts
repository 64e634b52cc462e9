import type { Transaction } from "../db/client.ts";
import { APART } from "../db/together.ts";
import { lockFeeds, noteRefusedAnswer } from "../houses/feed-store.ts";
import { listFormats, saveFormats } from "../houses/format-store.ts";
import { tellAnswer, tellUnreadable } from "./answer-notices.ts";
import { followFormats, type FormatChange } from "./format-desk.ts";
import { verdictOf } from "./format-watch.ts";
import { gapsShownWhole } from "./gaps.ts";
import { listUnknownGaps, type NewGap } from "./gaps-store.ts";
import { listHeldBack, listKnown } from "./known-store.ts";
import { NoticeDesk } from "./notice-desk.ts";
import { listOpenNotices, refreshNotices, saveNotices } from "./notices-store.ts";
import { publishTables } from "./publish-store.ts";
import { listStillUnread, markPayloads, type ReadPayload, type UnreadPayload } from "./payload-store.ts";
import { idsOf, type Prepared, type PreparedBatch } from "./prepare.ts";
import { isNewerAnchor } from "./proofs.ts";
import type { KnownRound } from "./round.ts";
import { saveAdditions, type Addition } from "./save.ts";
import { lockTables, type LockedTable } from "./store.ts";
import { takeIn, type HeldBack, type TakenIn } from "./take-in.ts";

/** What one batch of answers came to. */
export interface NormalizedBatch {
  /** Ids of the answers that were read or refused. */
  payloadIds: bigint[];
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
  /** What changed of what is known of the feeds' formats. */
  formats: FormatChange[];
}

/** Tables that are locked, and the batches that have all of theirs. */
interface Claimed {
  locked: LockedTable[];
  own: Map<PreparedBatch, Set<number>>;
}

/**
 * Stores batches of several houses in one transaction, each as if it came alone. One with a table that somebody else
 * holds, or that a batch before it has too, is left out and told apart.
 */
export async function storeBatches(
  sql: Transaction,
  batches: readonly PreparedBatch[],
): Promise<(NormalizedBatch | typeof APART)[]> {
  const { locked, own } = await claimTables(sql, batches);
  if (own.size === 0) return batches.map(() => APART);
  const stored = await storeLocked(sql, locked, mergeBatches([...own.keys()]), new Map());
  return batches.map((batch) => {
    const tableIds = own.get(batch);
    return tableIds === undefined ? APART : partOf(stored, tableIds);
  });
}

/**
 * Stores a batch, however long it must wait for its tables; `useless` tells of each table whether the answer before told
 * nothing, and is kept up to date.
 */
export async function storeBatch(
  sql: Transaction,
  batch: PreparedBatch,
  useless: Map<number, boolean>,
): Promise<NormalizedBatch> {
  const tableIds = tablesOf(batch);
  return partOf(await storeLocked(sql, await lockTables(sql, [...tableIds]), batch, useless), tableIds);
}

async function claimTables(sql: Transaction, batches: readonly PreparedBatch[]): Promise<Claimed> {
  const wanted = new Set(batches.flatMap((batch) => [...tablesOf(batch)]));
  const free = await lockTables(sql, [...wanted], { isPatient: false });
  const left = new Set(free.map(({ id }) => id));
  const own = new Map<PreparedBatch, Set<number>>();
  for (const batch of batches) {
    const tableIds = tablesOf(batch);
    if (!tableIds.isSubsetOf(left)) continue;
    own.set(batch, tableIds);
    for (const id of tableIds) left.delete(id);
  }
  const claimed = new Set([...own.values()].flatMap((tableIds) => [...tableIds]));
  return { locked: free.filter(({ id }) => claimed.has(id)), own };
}

function tablesOf({ answers }: PreparedBatch): Set<number> {
  return new Set(answers.map(({ payload }) => payload.tableId));
}

/** Of batches whose tables differ. */
function mergeBatches(batches: readonly PreparedBatch[]): PreparedBatch {
  return {
    answers: batches.flatMap(({ answers }) => answers),
    anchors: new Map(batches.flatMap(({ anchors }) => [...anchors])),
    known: new Map(batches.flatMap(({ known }) => [...known])),
    lastSeqs: new Map(batches.flatMap(({ lastSeqs }) => [...lastSeqs])),
  };
}

/** What storing came to, table by table. */
interface Stored {
  open: readonly Prepared[];
  additions: readonly Addition[];
  gaps: readonly NewGap[];
  formats: readonly FormatChange[];
  published: readonly number[];
}

function partOf({ open, additions, gaps, formats, published }: Stored, tableIds: ReadonlySet<number>): NormalizedBatch {
  const answers = open.filter(({ payload }) => tableIds.has(payload.tableId));
  const taken = additions.flatMap((one) => (tableIds.has(one.table.id) ? [one.taken] : []));
  const sum = (count: (one: TakenIn) => number) => taken.reduce((total, one) => total + count(one), 0);
  return {
    payloadIds: answers.map(({ payload }) => payload.id),
    payloads: answers.length,
    refused: answers.filter(({ ok }) => !ok).length,
    rounds: sum(({ rounds }) => rounds.length),
    late: sum(({ rounds }) => rounds.filter(({ late }) => late).length),
    quarantined: sum(({ refused }) => refused.length),
    conflicts: sum(({ conflicts }) => conflicts.length),
    gaps: gaps.flatMap(({ id, tableId }) => (tableIds.has(tableId) ? [id] : [])),
    published: published.filter((id) => tableIds.has(id)).length,
    formats: formats.filter(({ tableId }) => tableIds.has(tableId)),
    proofFailed: taken.some(({ refused }) => refused.some(({ code }) => code === "proof_mismatch")),
  };
}

/** Stores answers whose tables are locked. */
async function storeLocked(
  sql: Transaction,
  locked: readonly LockedTable[],
  { answers, anchors, ...prepared }: PreparedBatch,
  useless: Map<number, boolean>,
): Promise<Stored> {
  const unread = await listStillUnread(
    sql,
    answers.map(({ payload }) => payload),
  );
  const open = answers.filter(({ payload }) => unread.has(payload.id));
  const tables = new Map(locked.map((table) => [table.id, table]));
  const ids = open.flatMap((answer) => (answer.ok ? idsOf(answer.payload.tableId, answer.items) : []));
  const known = await knownUnderLock(sql, locked, ids, prepared);
  const heldBack = await listHeldBack(sql, ids);
  const unknownGaps = await listUnknownGaps(
    sql,
    locked.flatMap(({ id, state }) => (state.roundIds === "opaque" ? [id] : [])),
  );
  const notices = new NoticeDesk(await listOpenNotices(sql, [...tables.keys()]));
  const formats = followFormats(await listFormats(sql, [...tables.keys()]));
  // in one order, as polls do: several of them are changed one by one
  if (open.some(({ ok }) => !ok)) await lockFeeds(sql, [...tables.keys()]);
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
      tellUnreadable(notices, table.id, answer, formats.follow(table.id, "unreadable", payload.now));
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
    const { items, refusedByAdapter: refused, isPage } = answer;
    const verdict = verdictOf({ items: items.length, refused, kept: taken.refused.length, isPage });
    const isChanged = formats.follow(table.id, verdict, payload.now);
    tellAnswer(notices, table.id, answer, taken, isChanged);
  }
  for (const [id, anchor] of anchors) {
    const table = tables.get(id);
    if (table !== undefined && isNewerAnchor(anchor, table.anchor)) table.anchor = anchor;
  }
  const { gaps, troubled } = await saveAdditions(sql, locked, additions);
  await markPayloads(sql, marks);
  await saveNotices(sql, notices.changes());
  const changed = formats.changes();
  if (changed.length > 1) {
    await lockFeeds(
      sql,
      changed.map(({ tableId }) => tableId),
    );
  }
  await saveFormats(
    sql,
    changed.map(({ tableId, to }) => ({ tableId, ...to })),
  );
  await refreshNotices(sql, [...new Set([...troubled, ...mended])]);
  const published = await publishTables(sql, [...tables.keys()]);
  return { open, additions, gaps, formats: changed, published };
}

/** What is stored of these rounds: as it was read before, or read again where somebody else added rounds since. */
async function knownUnderLock(
  sql: Transaction,
  locked: readonly LockedTable[],
  ids: readonly { tableId: number; roundId: string }[],
  { known, lastSeqs }: Pick<PreparedBatch, "known" | "lastSeqs">,
): Promise<Map<number, Map<string, KnownRound>>> {
  const moved = new Set(locked.flatMap(({ id, state }) => (lastSeqs.get(id) === state.lastSeq ? [] : [id])));
  const again = await listKnown(
    sql,
    ids.filter(({ tableId }) => moved.has(tableId)),
  );
  // copies: what this transaction adds to them must not outlive it
  for (const [id, rounds] of known) if (!moved.has(id)) again.set(id, new Map(rounds));
  return again;
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
