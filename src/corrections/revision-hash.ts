import { hash } from "node:crypto";
import canonicalize from "canonicalize";

/** The fields of a revision's hash; numbers as texts, null for a void round and for no conflict. */
export interface HashedRevision {
  table: string;
  seq: string;
  round_id: string;
  from: string | null;
  to: string | null;
  color: string | null;
  reason: string;
  by: string;
  at: string;
  conflict_id: string | null;
}

/**
 * Hash of a revision, hex: sha256(prev_hash + "\n" + JCS(fields)), JCS being RFC 8785. The hash before the first
 * revision of a table is 64 zeros; the table stores that of its newest, so a changed, removed or inserted revision is
 * detected.
 */
export function revisionHash(prevHash: string, fields: HashedRevision): string {
  return hash("sha256", `${prevHash}\n${canonicalize(fields)}`);
}
