import { hash } from "node:crypto";
import { promisify } from "node:util";
import { gzip, gzipSync } from "node:zlib";
import type { Lease } from "./lease-store.ts";
import type { AskedTable } from "./poll-summary.ts";

/** One answer as it is written; `body` is null where it is not to be stored again. */
export interface AnswerRow {
  asked: AskedTable;
  tableId: number;
  /** What it says of rounds that were not there yet: they were not, or nothing any more, or no more than before. */
  absence: "told" | "forgotten" | "as_before";
  /** It may be the page of a round that was there for long. */
  ahead: boolean;
  requestedMs: number;
  receivedMs: number;
  path: string;
  status: number | null;
  contentType: string | null;
  etag: string | null;
  lastModified: string | null;
  bytes: number | null;
  sha256: string | null;
  /** What the feed's last hash was when the lease was taken: where it changed since, the answer is of an old feed. */
  knownSha256: string | null;
  body: Buffer | null;
}

/** What a feed's newest stored answer was when another one came. */
interface Before {
  sha256: string | null;
  path: string | null;
}

/**
 * Rows in waves: the first answer of each table, the second … so that each is compared with the one before it, and that
 * what a page makes known of the next one is known to it.
 */
export async function toWaves(lease: Lease, asked: readonly AskedTable[]): Promise<AnswerRow[][]> {
  const waves: AnswerRow[][] = [];
  const counts = new Map<number, number>();
  const befores = new Map<number, Before>(
    lease.tables.map(({ tableId, lastSha256, lastPath }) => [tableId, { sha256: lastSha256, path: lastPath }]),
  );
  for (const one of asked) {
    const row = await toRow(one, befores.get(one.tableId) ?? { sha256: null, path: null });
    if (row.sha256 !== null) befores.set(one.tableId, { sha256: row.sha256, path: row.path });
    const wave = counts.get(one.tableId) ?? 0;
    counts.set(one.tableId, wave + 1);
    (waves[wave] ??= []).push(row);
  }
  return waves;
}

/**
 * Marks answers that are good HTTP and no good all the same: of a feed whose format changed, where only reading them
 * tells when that is over, or as unreadable as the one before.
 */
export function withUnreadable(lease: Lease, asked: readonly AskedTable[], rows: readonly AnswerRow[]): AskedTable[] {
  const tables = new Map(lease.tables.map((table) => [table.tableId, table]));
  const repeats = new Set(rows.filter(({ body }) => body === null).map((row) => row.asked));
  return asked.map((one) => {
    const table = tables.get(one.tableId);
    const { kind } = one.answer;
    const isRepeat = (kind === "answer" || kind === "unchanged") && repeats.has(one);
    const isUnreadable = table?.formatChanged === true || (table?.refused === true && isRepeat);
    return kind !== "failed" && isUnreadable ? { ...one, isUnreadable } : one;
  });
}

async function toRow(asked: AskedTable, before: Before): Promise<AnswerRow> {
  const { tableId, path, requestedMs, receivedMs, answer, roundId, isAhead = false } = asked;
  const knownSha256 = before.sha256;
  const full = answer.kind === "answer" ? answer : null;
  const sha256 = full === null ? null : hash("sha256", full.body);
  // two rounds with the same result may have equal pages, so a page is compared with itself only
  const isRepeat = sha256 === knownSha256 && (roundId === undefined || path === before.path);
  return {
    asked,
    tableId,
    absence: absenceOf(asked),
    ahead: isAhead,
    requestedMs,
    receivedMs,
    path,
    status: answer.status,
    contentType: full?.contentType?.slice(0, 200) ?? null,
    etag: full?.etag?.slice(0, 1000) ?? null,
    lastModified: full?.lastModified?.slice(0, 100) ?? null,
    bytes: full?.body.length ?? null,
    sha256,
    knownSha256,
    body: full === null || isRepeat ? null : await compressed(full.body),
  };
}

/** Bodies up to this are compressed at once: 15 to 100 µs, where to hand one to another thread takes 200. */
const SMALL_BODY = 16 << 10;
/** A window and tables of that size: equal results, and half the time, which is spent on making them ready. */
const FOR_SMALL = { windowBits: 14, memLevel: 5 };

async function compressed(body: Buffer): Promise<Buffer> {
  return body.length <= SMALL_BODY ? gzipSync(body, FOR_SMALL) : promisify(gzip)(body);
}

/**
 * A list says of every round that is not on it that it was not there. Where each round has its own page, only the 404 of
 * the next one's does; a page that is there says nothing of the one after it, which may be there as well.
 */
function absenceOf({ answer, roundId, isAhead }: AskedTable): AnswerRow["absence"] {
  if (answer.kind === "failed") return "as_before";
  if (roundId === undefined) return "told";
  if (answer.kind === "answer") return "forgotten";
  return answer.kind === "absent" && isAhead !== true ? "told" : "as_before";
}
