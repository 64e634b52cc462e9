import { hash } from "node:crypto";
import { promisify } from "node:util";
import { gzip, gzipSync } from "node:zlib";
import type { Lease } from "../houses/polling/lease-store.ts";
import type { AskedTable } from "../houses/polling/poll-summary.ts";
import type { HeadRow } from "./rows.ts";
import type { PolledResponse, ReadResponse, ReceivedPayload } from "./state.ts";
import { fromDatabase, laterBy } from "./times.ts";

/** What a table was asked and what came, by the clock of the database. */
export interface Received {
  asked: AskedTable;
  requestedAt: string;
  receivedAt: string;
  /** Null without a body: a failure, a 304 or the 404 of a page. */
  body: { bytes: Buffer; sha256: string } | null;
}

/** Gives what came the times of the database: that of the lease, and what a monotonic clock says since. */
export function receive(lease: Lease, asked: AskedTable): Received {
  const leasedAt = fromDatabase(lease.now);
  const { answer } = asked;
  return {
    asked,
    requestedAt: laterBy(leasedAt, asked.requestedMs),
    receivedAt: laterBy(leasedAt, asked.receivedMs),
    body: answer.kind === "answer" ? { bytes: answer.body, sha256: hash("sha256", answer.body) } : null,
  };
}

/** Whether a response is the newest payload once more. Two rounds may have equal pages, so a page is compared with itself only. */
export function isRepeated({ asked, body }: Received, head: HeadRow): boolean {
  if (asked.answer.kind === "unchanged") return true;
  if (body === null || body.sha256 !== head.payloadSha256) return false;
  return asked.roundId === undefined || asked.path === head.payloadPath;
}

/** The response as a pass takes it in; `read` is null when it is a repeat, failed, or waits to be read. */
export async function polledResponse(
  received: Received,
  head: HeadRow,
  read: ReadResponse | null,
): Promise<PolledResponse> {
  const { asked, requestedAt, receivedAt } = received;
  const isRepeat = isRepeated(received, head);
  return {
    from: "poll",
    requestedAt,
    receivedAt,
    absence: absenceOf(asked),
    isAhead: asked.isAhead === true,
    isRepeat,
    payload: isRepeat ? null : await payloadOf(received),
    read,
  };
}

/** What is stored of a response; null when it has no body. */
export async function payloadOf({ asked, body }: Received): Promise<ReceivedPayload | null> {
  const { answer, path } = asked;
  if (body === null || answer.kind !== "answer") return null;
  return {
    path,
    status: answer.status,
    contentType: answer.contentType?.slice(0, 200) ?? null,
    bytes: body.bytes.length,
    sha256: body.sha256,
    body: await compressed(body.bytes),
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
function absenceOf({ answer, roundId, isAhead }: AskedTable): PolledResponse["absence"] {
  if (answer.kind === "failed") return "as_before";
  if (roundId === undefined) return "told";
  if (answer.kind === "answer") return "forgotten";
  return answer.kind === "absent" && isAhead !== true ? "told" : "as_before";
}
