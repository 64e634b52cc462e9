import type { Sql } from "../db/client.ts";
import { auditHash, FIRST_AUDIT_HASH } from "./entry.ts";
import { findAuditHead, type HashedRow, listHashedEntries } from "./store.ts";

const BATCH = 1_000;

/** The first entry that differs from its hash. */
export interface AuditFailure {
  /** Its place in the log. */
  id: string;
  expected: string;
  found: string;
}

/**
 * Recomputes the chain of the audit log from its first entry to its last: consecutive places, each hash from its fields
 * and the previous hash, and the end that audit_head states.
 */
export async function verifyAudit(sql: Sql): Promise<{ entries: number; failure: AuditFailure | null }> {
  const head = await findAuditHead(sql); // read first: entries added meanwhile follow it
  let entries = 0;
  let last = { seq: 0n, hash: FIRST_AUDIT_HASH };
  for (;;) {
    const rows = await listHashedEntries(sql, String(last.seq), BATCH);
    for (const row of rows) {
      const failure = faultOf(row, last);
      if (failure !== null) return { entries, failure };
      last = { seq: BigInt(row.seq), hash: row.hash };
      entries += 1;
      if (head !== null && row.seq === head.seq && row.hash !== head.hash) {
        return { entries, failure: { id: row.seq, expected: `hash ${head.hash}`, found: `hash ${row.hash}` } };
      }
    }
    if (rows.length < BATCH) break;
  }
  if (head !== null && BigInt(head.seq) <= last.seq) return { entries, failure: null };
  const expected = head === null ? "the end of the log in audit_head" : `entry ${head.seq}, the log's end`;
  return { entries, failure: { id: head?.seq ?? "0", expected, found: `nothing after entry ${last.seq}` } };
}

function faultOf(row: HashedRow, last: { seq: bigint; hash: string }): AuditFailure | null {
  const { prev_hash: prevHash, hash, ...fields } = row;
  const next = String(last.seq + 1n);
  if (row.seq !== next) return { id: next, expected: `entry ${next}`, found: `entry ${row.seq}` };
  if (prevHash !== last.hash)
    return { id: row.seq, expected: `prev_hash ${last.hash}`, found: `prev_hash ${prevHash}` };
  const expected = auditHash(prevHash, fields);
  return hash === expected ? null : { id: row.seq, expected: `hash ${expected}`, found: `hash ${hash}` };
}
