import { hash } from "node:crypto";
import type { Sql, Transaction } from "../db/client.ts";
import type { Prover } from "../houses/fairness/prove.ts";
import type { House } from "../houses/house.ts";
import { gapsShownWhole } from "./gaps.ts";
import { listUnknownGaps } from "./gaps-store.ts";
import { listHeldBack, listKnown } from "./known-store.ts";
import { publishTables } from "./publish-store.ts";
import { refreshNotices } from "./notices-store.ts";
import { idsOf, prepareBatch, type Prepared, type PreparedBatch } from "./prepare.ts";
import { isOwnFault, ownFault } from "./read-answer.ts";
import { emptyReread, noteRefusal, type Reread } from "./reread-report.ts";
import {
  listKnownConflicts,
  listKnownItems,
  listReleasable,
  listToReread,
  markReread,
  releaseItems,
  type ReadableItem,
  type RereadMark,
  type RereadPlace,
  type RereadRange,
  type StoredPayload,
} from "./reread-store.ts";
import type { KnownRound } from "./round.ts";
import { saveAdditions, type Addition } from "./save.ts";
import { listTableStates, lockTables, type LockedTable } from "./store.ts";
import { takeIn, type HeldBack, type TakenIn } from "./take-in.ts";

/** How a range is read again. */
export interface RereadWork {
  /** Work everything out and store nothing. */
  dryRun: boolean;
  /** Who asked for it: items that leave quarantine say so. */
  by: string;
  /** At most so many answers; the rest is gone on with from `next`. */
  most: number;
  after?: RereadPlace | null;
  /** Ends it between two batches, with what is done by then and where to go on. */
  until?: AbortSignal;
  /** Ends it with its reason thrown; what is stored by then stays. */
  signal: AbortSignal;
  /** Told how many answers have been read. */
  progress?: (done: number) => void;
}

/**
 * Reads the stored answers of a range once more, with the adapters and settings of now: after an adapter was mended, or
 * for answers that were refused. What they show that we do not have is taken in as late (shown, never learned from,
 * resolving nothing), another result for a round we have becomes a conflict, an item that can be read now leaves
 * quarantine, and an answer that can be read now is no longer refused. A second time nothing is new.
 *
 * Answers come in request order, a batch in one transaction that holds the locks of its tables, none while it reads and
 * proves. A dry run takes no lock: what an answer would bring is known to those after it all the same.
 */
export async function rereadRange(
  sql: Sql,
  house: House,
  prover: Prover,
  range: RereadRange,
  { dryRun, by, most, after = null, until, signal, progress = () => undefined }: RereadWork,
): Promise<Reread> {
  const report = emptyReread();
  const imagined: Imagined | null = dryRun ? { tables: new Map(), known: new Map(), seen: new Set() } : null;
  let place = after;
  for (;;) {
    signal.throwIfAborted();
    const left = most - report.payloads;
    const payloads = await listToReread(sql, range, place, Math.max(left, 1));
    const last = payloads.at(-1);
    if (last === undefined) return { ...report, next: null };
    if (left <= 0 || until?.aborted === true) return { ...report, next: place };
    const batch = await prepareBatch(sql, house, prover, payloads, signal);
    if (imagined === null) await storeSafely(sql, batch, { report, by, signal });
    else await takeBatch(sql, batch.answers, report, imagined);
    report.payloads += payloads.length;
    progress(report.payloads);
    place = { requestedAt: last.requestedAt, id: last.id };
  }
}

/** What a dry run has seen so far and nothing holds: tables as they would be, their rounds, and what was counted. */
interface Imagined {
  tables: Map<number, LockedTable>;
  known: Map<number, Map<string, KnownRound>>;
  seen: Set<string>;
}

interface Storing {
  report: Reread;
  by: string;
  signal: AbortSignal;
}

/** All in one transaction; where our own code fails on it, one after the other, and the one it fails on is refused. */
async function storeSafely(sql: Sql, { answers }: PreparedBatch, { report, by, signal }: Storing): Promise<void> {
  try {
    await storeAnswers(sql, answers, report, by);
  } catch (error) {
    if (!isOwnFault(error)) throw error;
    for (const answer of answers) {
      signal.throwIfAborted();
      try {
        await storeAnswers(sql, [answer], report, by);
      } catch (own) {
        if (!isOwnFault(own)) throw own;
        await storeAnswers(sql, [{ payload: answer.payload, ok: false, reason: ownFault(own) }], report, by);
      }
    }
  }
}

async function storeAnswers(sql: Sql, answers: readonly Prepared[], report: Reread, by: string): Promise<void> {
  const counted = emptyReread();
  await sql.begin(async (tx) => {
    const locked = await lockTables(tx, tableIdsOf(answers));
    const { additions, marks, releasable } = await takeBatch(tx, answers, counted, null, locked);
    await saveAdditions(tx, locked, additions);
    await releaseItems(tx, releasable, by);
    await markReread(tx, marks);
    const ids = locked.map(({ id }) => id);
    await refreshNotices(tx, ids);
    await publishTables(tx, ids);
  });
  // only what was stored counts
  report.readable += counted.readable;
  report.rounds += counted.rounds;
  report.known += counted.known;
  report.conflicts += counted.conflicts;
  report.quarantined += counted.quarantined;
  report.released += counted.released;
  for (const { reason, payloads } of counted.refused) noteRefusal(report, reason, payloads);
}

interface TakenBatch {
  additions: Addition[];
  marks: RereadMark[];
  releasable: bigint[];
}

/** Takes answers in, in memory: counts what they bring into `report` and gives what is to be stored. */
async function takeBatch(
  sql: Sql | Transaction,
  answers: readonly Prepared[],
  report: Reread,
  imagined: Imagined | null,
  locked?: readonly LockedTable[],
): Promise<TakenBatch> {
  const tables = new Map((locked ?? (await listTableStates(sql, tableIdsOf(answers)))).map((one) => [one.id, one]));
  for (const [id, table] of imagined?.tables ?? []) if (tables.has(id)) tables.set(id, table);
  const ids = answers.flatMap((answer) => (answer.ok ? idsOf(answer.payload.tableId, answer.items) : []));
  const known = await listKnown(sql, ids);
  const heldBack = await listHeldBack(sql, ids);
  const opaque = [...tables.values()].flatMap(({ id, state }) => (state.roundIds === "opaque" ? [id] : []));
  const unknownGaps = await listUnknownGaps(sql, opaque);
  const additions: Addition[] = [];
  const marks: RereadMark[] = [];
  const readable: ReadableItem[] = [];
  for (const answer of answers) {
    const payload = answer.payload as StoredPayload;
    const table = tables.get(payload.tableId);
    if (table === undefined) throw new Error(`the answer ${payload.id} is of a table that does not exist`);
    if (!answer.ok) {
      noteRefusal(report, answer.reason);
      // what was read before keeps its rounds, so that it is no refused answer
      if (payload.state === "refused") marks.push(markOf(payload, { refusedReason: answer.reason }));
      continue;
    }
    if (payload.state === "refused") report.readable += 1;
    const ofTable = knownOf(table.id, known, imagined);
    const taken = takeIn(
      { ...table.state, feedOrder: answer.feedOrder },
      { items: answer.items, absentAt: null, manner: "reread" },
      { known: ofTable, heldBack: heldBack.get(table.id) ?? new Map<string, HeldBack>() },
    );
    for (const { roundId, seq, hundredths, verified, proofHash } of taken.rounds) {
      ofTable.set(roundId, { seq, hundredths, late: true, verified, proofHash, payloadId: String(payload.id) });
    }
    table.state = taken.state;
    imagined?.tables.set(table.id, table);
    const gaps = unknownGaps.filter(({ tableId }) => tableId === table.id);
    additions.push({ table, source: "history", from: payload, taken, shown: gapsShownWhole(taken.sequence, gaps) });
    readable.push(...readableItems(payload, answer, taken));
    report.rounds += taken.rounds.length;
    report.known += taken.duplicates;
    const counts = { items: answer.items.length, newRounds: taken.rounds.length, quarantined: taken.refused.length };
    marks.push(markOf(payload, counts));
  }
  await keepNews(sql, additions, report, imagined?.seen ?? new Set());
  const releasable = await listReleasable(sql, readable);
  const isCounted = (id: bigint) => imagined === null || !imagined.seen.has(`item ${id}`);
  report.released += releasable.filter(isCounted).length;
  for (const id of releasable) imagined?.seen.add(`item ${id}`);
  return { additions, marks, releasable };
}

/** Leaves of conflicts and of refused items those that are not listed yet: reading again must not count them again. */
async function keepNews(
  sql: Sql | Transaction,
  additions: readonly Addition[],
  report: Reread,
  seen: Set<string>,
): Promise<void> {
  const conflicts = additions.flatMap(({ table, taken }) =>
    taken.conflicts.map(({ roundId, other }) => ({ tableId: table.id, roundId, other })),
  );
  const items = additions.flatMap(({ table, taken }) =>
    taken.refused.map(({ raw, code }) => ({ tableId: table.id, sha256: itemHash(raw), code })),
  );
  for (const key of await listKnownConflicts(sql, conflicts)) seen.add(`conflict ${key}`);
  for (const key of await listKnownItems(sql, items)) seen.add(`refused ${key}`);
  const isNew = (key: string) => !seen.has(key) && seen.add(key).has(key);
  for (const { table, taken } of additions) {
    taken.conflicts = taken.conflicts.filter(({ roundId, other }) => isNew(`conflict ${table.id}|${roundId}|${other}`));
    taken.refused = taken.refused.filter(({ raw, code }) => isNew(`refused ${table.id}|${itemHash(raw)}|${code}`));
    report.conflicts += taken.conflicts.length;
    report.quarantined += taken.refused.length;
  }
}

/** As quarantine lists an item. */
function itemHash(raw: unknown): string {
  return hash("sha256", JSON.stringify(raw) ?? "null");
}

/** The items of an answer that were taken for rounds, new or known. */
function readableItems(payload: StoredPayload, answer: Prepared & { ok: true }, taken: TakenIn): ReadableItem[] {
  const refused = new Set(taken.refused.map(({ roundId }) => roundId));
  return answer.items.flatMap((item) => {
    if (!item.ok || refused.has(item.round.roundId)) return [];
    const { roundId } = item.round;
    return [{ tableId: payload.tableId, payloadId: payload.id, sha256: itemHash(item.raw), roundId }];
  });
}

function markOf(
  { id, receivedAt }: StoredPayload,
  result: { refusedReason: string } | { items: number; newRounds: number; quarantined: number },
): RereadMark {
  return "refusedReason" in result
    ? { id, receivedAt, state: "refused", ...result, items: null, newRounds: 0, quarantined: null }
    : { id, receivedAt, state: "read", refusedReason: null, ...result };
}

/** What is known of a table's rounds: as stored, and what a dry run imagines beside it. */
function knownOf(
  tableId: number,
  stored: Map<number, Map<string, KnownRound>>,
  imagined: Imagined | null,
): Map<string, KnownRound> {
  const own = stored.get(tableId) ?? new Map<string, KnownRound>();
  stored.set(tableId, own);
  if (imagined === null) return own;
  const whole = imagined.known.get(tableId) ?? new Map<string, KnownRound>();
  imagined.known.set(tableId, whole);
  for (const [roundId, round] of own) if (!whole.has(roundId)) whole.set(roundId, round);
  return whole;
}

function tableIdsOf(answers: readonly Prepared[]): number[] {
  return [...new Set(answers.map(({ payload }) => payload.tableId))];
}
