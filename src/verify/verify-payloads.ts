import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { Transaction } from "../db/client.ts";
import { reasonOf } from "../errors.ts";
import { listServedTables } from "../rounds/lists/payload-list-store.ts";
import type { Wrong } from "./check-round.ts";
import { listStoredBodies, type StoredBody } from "./verify-payloads-store.ts";

const decompress = promisify(gunzip);
/** Bodies in memory together; a large response has some megabytes. */
const BATCH = 50;
/** No stored response is larger. */
const LARGEST_BODY = 256 * 1024 * 1024;
/** Tables that a failure names. */
const MOST_NAMED = 20;

/** A stored payload that is not what was received. */
export interface WrongPayload extends Wrong {
  kind: "payload";
  id: string;
}

/**
 * Checks that each stored response body has the hash that was computed when it was received, of one table or of all, up
 * to the first that differs; the failure names every table that the response served.
 */
export async function verifyPayloads(
  tx: Transaction,
  tableId: number | undefined,
): Promise<{ payloads: number; failure: WrongPayload | null }> {
  let payloads = 0;
  let after: StoredBody | null = null;
  for (;;) {
    const bodies: StoredBody[] = await listStoredBodies(tx, tableId, { after, limit: BATCH });
    for (const stored of bodies) {
      const found = await hashOf(stored.body);
      if (found !== `sha256 ${stored.sha256}`) return { payloads, failure: await failureOf(tx, stored, found) };
      payloads += 1;
    }
    after = bodies.at(-1) ?? null;
    if (after === null || bodies.length < BATCH) return { payloads, failure: null };
  }
}

async function hashOf(body: Buffer | null): Promise<string> {
  if (body === null) return "no body";
  try {
    const bytes = await decompress(body, { maxOutputLength: LARGEST_BODY });
    return `sha256 ${createHash("sha256").update(bytes).digest("hex")}`;
  } catch (error) {
    return `a body that cannot be decompressed (${reasonOf(error)})`;
  }
}

async function failureOf(tx: Transaction, stored: StoredBody, found: string): Promise<WrongPayload> {
  const { tables, total } = await listServedTables(tx, stored, MOST_NAMED);
  const names = [stored.table, ...tables.map(({ table }) => table)].join(", ");
  const more = total > tables.length ? ` and ${total - tables.length} more` : "";
  return {
    kind: "payload",
    id: `${stored.table} ${stored.receivedAt}`,
    expected: `sha256 ${stored.sha256}`,
    found: `${found}; the response served ${names}${more}`,
  };
}
