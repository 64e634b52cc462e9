import type { Transaction } from "../db/client.ts";
import { colorOf } from "../rounds/colors.ts";
import { revisionHash } from "../corrections/revision-hash.ts";
import type { Wrong } from "./check-round.ts";
import type { Band } from "../forecasts/model/table-model.ts";
import { listDecidedWithout, listStoredRevisions, type StoredRevision } from "./verify-revisions-store.ts";

/** A revision that differs from what its round and earlier revisions give. */
export type WrongRevision = Wrong & { kind: "revision"; id: string };

const REVISIONS_PER_READ = 1000;

const FIRST_HASH = "0".repeat(64);

/**
 * Checks the operators' decisions on a table's rounds: each revision names a stored round and its result at the time, a
 * decision on a conflict keeps that result or takes the conflict's other one, no conflict is decided without a
 * revision, and the chain of hashes leads from the first revision to the one that the table names as its newest.
 */
export async function verifyRevisions(
  tx: Transaction,
  table: { id: number; name: string; bands: readonly Band[]; revisionHash: string },
): Promise<WrongRevision | null> {
  const standing = new Map<string, bigint | null>();
  let newest = { roundId: "", hash: FIRST_HASH };
  for (let afterId = 0n; ;) {
    const revisions = await listStoredRevisions(tx, table.id, afterId, REVISIONS_PER_READ);
    for (const revision of revisions) {
      const wrong = checkRevision(revision, table.bands, standing) ?? checkHash(table.name, revision, newest.hash);
      if (wrong !== null) return { kind: "revision", id: `${table.name} ${revision.roundId} ${revision.id}`, ...wrong };
      standing.set(revision.roundId, revision.to);
      newest = revision;
      afterId = revision.id;
    }
    if (revisions.length < REVISIONS_PER_READ) break;
  }
  if (newest.hash !== table.revisionHash) {
    const id = `${table.name} ${newest.roundId}`.trim();
    return { kind: "revision", id, expected: `a newest revision with hash ${table.revisionHash}`, found: newest.hash };
  }
  const [undecided] = await listDecidedWithout(tx, table.id);
  if (undecided === undefined) return null;
  const id = `${table.name} ${undecided.roundId}`;
  return { kind: "revision", id, expected: `a revision that decides conflict ${undecided.id}`, found: "none" };
}

function checkRevision(
  { from, to, color, stored, conflict, conflictId }: StoredRevision,
  bands: readonly Band[],
  standing: ReadonlyMap<string, bigint | null>,
): Wrong | null {
  if (stored === null) return { expected: "a stored round with its id and seq", found: "none" };
  const before = standing.get(stored.roundId);
  const current = before === undefined ? BigInt(stored.hundredths) : before;
  if (from !== current) return { expected: `from ${textOf(current)}`, found: `from ${textOf(from)}` };
  const expectedColor = to === null ? null : colorOf(Number(to), bands);
  if (color !== expectedColor)
    return { expected: `color ${expectedColor ?? "none"}`, found: `color ${color ?? "none"}` };
  if (conflictId === null) return null;
  if (conflict === null) return { expected: `conflict ${conflictId} of this round, decided`, found: "none" };
  if (to === from || to === BigInt(conflict.other)) return null;
  return { expected: `to ${textOf(from)} or ${conflict.other}`, found: `to ${textOf(to)}` };
}

function checkHash(table: string, revision: StoredRevision, before: string): Wrong | null {
  if (revision.prevHash !== before) return { expected: `prev_hash ${before}`, found: `prev_hash ${revision.prevHash}` };
  const orNull = (value: bigint | null) => (value === null ? null : String(value));
  const hash = revisionHash(before, {
    table,
    seq: String(revision.seq),
    round_id: revision.roundId,
    from: orNull(revision.from),
    to: orNull(revision.to),
    color: revision.color,
    reason: revision.reason,
    by: revision.by,
    at: revision.at,
    conflict_id: orNull(revision.conflictId),
  });
  return hash === revision.hash ? null : { expected: `hash ${hash}`, found: `hash ${revision.hash}` };
}

function textOf(hundredths: bigint | null): string {
  return hundredths === null ? "void" : `${hundredths} hundredths`;
}
