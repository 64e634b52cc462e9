import { hash, subtle } from "node:crypto";
import { promisify } from "node:util";
import { gzip, gzipSync } from "node:zlib";
import type { Lease } from "../houses/polling/lease-store.ts";
import type { RequestedTable } from "../houses/polling/poll-summary.ts";
import { LARGEST_HERE } from "../rounds/read-response.ts";
import { shareParsing } from "../houses/reading/read-text.ts";
import type { HeadRow } from "./compute/rows.ts";
import type { PolledResponse, ReadResponse, ReceivedPayload } from "./compute/response.ts";
import { fromDatabase, laterBy } from "./compute/times.ts";

/** The request and response of a table, by the database's clock. */
export interface Received {
  asked: RequestedTable;
  requestedAt: string;
  receivedAt: string;
  /** Null without a body: a failure, a 304 or the 404 of a page. One object for all tables that share a response. */
  body: ReceivedBody | null;
}

/** The body of a response. */
export interface ReceivedBody {
  bytes: Buffer;
  sha256: string;
  /** Several tables read it, and it is small enough to be searched for their parts first. */
  isShared: boolean;
  /** gzip; the same array each time, so that it is stored once. */
  packed: () => Promise<Buffer>;
}

/** Adds database times to responses: the lease's time plus what a monotonic clock measured since. */
export async function receiveAll(lease: Lease, asked: readonly RequestedTable[]): Promise<Received[]> {
  const leasedAt = fromDatabase(lease.now);
  const shared = new Set(asked.filter(({ isShared }) => isShared === true).map(({ response }) => response));
  const received = new Map<RequestedTable["response"], Omit<Received, "asked">>();
  const all: Received[] = [];
  for (const one of asked) {
    const { response } = one;
    const known = received.get(response) ?? {
      requestedAt: laterBy(leasedAt, one.requestedMs),
      receivedAt: laterBy(leasedAt, one.receivedMs),
      body: await bodyOf(response, shared.has(response)),
    };
    received.set(response, known);
    all.push({ asked: one, ...known });
  }
  return all;
}

async function bodyOf(response: RequestedTable["response"], hasOthers: boolean): Promise<ReceivedBody | null> {
  if (response.kind !== "response") return null;
  const { body: bytes } = response;
  const isShared = hasOthers && bytes.length <= LARGEST_HERE;
  if (isShared) shareParsing(bytes);
  let packed: Promise<Buffer> | null = null;
  return { bytes, sha256: await sha256(bytes), isShared, packed: () => (packed ??= compressed(bytes)) };
}

/** Larger bodies are hashed in another thread: one of 4 MB takes 17 ms. */
const HASHED_HERE = 256 << 10;

async function sha256(bytes: Buffer): Promise<string> {
  if (bytes.length <= HASHED_HERE) return hash("sha256", bytes);
  return Buffer.from(await subtle.digest("SHA-256", bytes as Buffer<ArrayBuffer>)).toString("hex");
}

/**
 * Whether a response repeats the newest payload. Two rounds may have equal pages, so a page is compared with itself
 * only.
 */
export function isRepeated({ asked, body }: Received, head: Pick<HeadRow, "payloadSha256" | "payloadPath">): boolean {
  if (asked.response.kind === "unchanged") return true;
  if (body === null || body.sha256 !== head.payloadSha256) return false;
  return asked.roundId === undefined || asked.path === head.payloadPath;
}

/**
 * A response as input of a pass; `read` is null if it is a repeat (as a whole, or of the table's part), if it failed,
 * or if it must be read later.
 */
export async function polledResponse(
  received: Received,
  read: ReadResponse | null,
  { isRepeat, part, served }: Pick<PolledResponse, "isRepeat" | "part"> & { served: readonly number[] },
): Promise<PolledResponse> {
  const { asked, requestedAt, receivedAt } = received;
  return {
    from: "poll",
    requestedAt,
    receivedAt,
    absence: absenceOf(asked),
    isAhead: asked.isAhead === true,
    isRepeat,
    part,
    payload: isRepeat ? null : await payloadOf(received, served),
    read,
  };
}

/** The row of a response, for `served` see PayloadRow; null if it has no body. */
export async function payloadOf(
  { asked, body }: Received,
  served: readonly number[] = [],
): Promise<ReceivedPayload | null> {
  const { response, path } = asked;
  if (body === null || response.kind !== "response") return null;
  return {
    path,
    status: response.status,
    contentType: response.contentType?.slice(0, 200) ?? null,
    bytes: body.bytes.length,
    sha256: body.sha256,
    body: await body.packed(),
    served,
  };
}

/** Smaller bodies are compressed synchronously: 15 to 100 µs, while a thread takes 200. */
const SMALL_BODY = 16 << 10;
/** A window and tables of that size: equal results in half the time, which is mostly set-up. */
const FOR_SMALL = { windowBits: 14, memLevel: 5 };

async function compressed(body: Buffer): Promise<Buffer> {
  return body.length <= SMALL_BODY ? gzipSync(body, FOR_SMALL) : promisify(gzip)(body);
}

/**
 * A list proves that later rounds were absent. If each round has its own page, only the 404 of the next one proves it:
 * an existing page proves nothing about the next one, which may exist as well.
 */
function absenceOf({ response, roundId, isAhead }: RequestedTable): PolledResponse["absence"] {
  if (response.kind === "failed") return "as_before";
  if (roundId === undefined) return "proven";
  if (response.kind === "response") return "forgotten";
  return response.kind === "absent" && isAhead !== true ? "proven" : "as_before";
}
