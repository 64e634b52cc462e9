import type { Sql } from "../db/client.ts";
import type { Point } from "../houses/fairness/claims.ts";
import type { Anchor, Prover } from "../houses/fairness/prove.ts";
import { loadState } from "../pass/add.ts";
import { anchorOf } from "../pass/read.ts";
import { findProvenAbove } from "../backfill/gap-attempt-store.ts";
import type { ReadRow } from "./row.ts";
import { listSharedHashes, listStagedLines, listStoredHashes, type StagedRow } from "./store.ts";
import { numberOf } from "../rounds/round.ts";
import type { TableSettings } from "../houses/settings/settings.ts";

/** Which lines fail their proof and why, and the newest proven round. */
export interface LineProofs {
  failed: Map<number, string>;
  newest: Anchor | null;
}

/** What the proof of lines needs. */
export interface LineProver {
  settings: TableSettings;
  prover: Prover;
  signal: AbortSignal;
  read: (row: StagedRow) => ReadRow;
  /** Lines proven per batch. */
  atOnce: number;
}

/** Proves rows with a hash, newest first: each batch then links to the one above it, one walk for the whole file. */
export async function proveLines(
  sql: Sql,
  tableId: number,
  staging: string,
  lines: Int32Array,
  { settings, prover, signal, read: readLine, atOnce }: LineProver,
): Promise<LineProofs> {
  const proofs: LineProofs = { failed: new Map(), newest: null };
  const { fairness } = settings;
  if (fairness === undefined) return proofs;
  const { table, head } = await loadState(sql, tableId);
  const anchor = anchorOf(head, fairness);
  proofs.newest = anchor;
  const { roundIds } = table;
  let lowest: Point | null = null;
  for (let to = lines.length; to > 0; to -= atOnce) {
    const rows = await listStagedLines(sql, staging, lines.subarray(Math.max(0, to - atOnce), to));
    const claims = rows.flatMap((row) => {
      const read = readLine(row);
      if (!read.ok || read.round.hash === null) return [];
      const number = roundIds === "consecutive" ? numberOf(read.round.roundId) : null;
      if (roundIds === "consecutive" && number === null) return [];
      return [{ line: row.line, number, hash: read.round.hash, hundredths: read.round.hundredths }];
    });
    if (claims.length === 0) continue;
    const highest = claims.at(-1)?.number ?? null;
    const above = highest === null || anchor === null ? null : await findProvenAbove(sql, tableId, highest);
    const points: Point[] = [anchor, lowest, above === null ? null : { ...above, of: null }].filter(
      (point) => point !== null,
    );
    const { verdicts, anchor: newest } = await prover.prove(
      table.name,
      fairness,
      { roundIds, points: proofs.newest === null ? points : [...points, proofs.newest], claims },
      signal,
    );
    for (const [place, { line }] of claims.entries()) {
      const verdict = verdicts[place];
      if (verdict?.ok === false) proofs.failed.set(line, `the proof fails: ${verdict.reason}`);
      const point = verdict?.ok === true ? verdict.point : null;
      if (point !== null && (lowest === null || isBelow(point, lowest))) lowest = point;
    }
    proofs.newest = newest; // of all points so far, including the given ones, the newest
  }
  if (roundIds === "opaque")
    await refuseStolen(sql, tableId, staging, { read: readLine, failed: proofs.failed, signal });
  return proofs;
}

/** If ids are opaque, a hash proves one round only: the stored one that has it, else the first line. */
async function refuseStolen(
  sql: Sql,
  tableId: number,
  staging: string,
  { read: readLine, failed, signal }: Pick<LineProver, "read" | "signal"> & { failed: Map<number, string> },
): Promise<void> {
  const checkOwner = (row: StagedRow, owner: string | null): string | null => {
    signal.throwIfAborted();
    const read = failed.has(row.line) ? null : readLine(row);
    if (read?.ok !== true) return owner;
    const { roundId } = read.round;
    if (owner !== null && owner !== roundId) failed.set(row.line, `the proof fails: the hash is that of ${owner}`);
    return owner ?? roundId;
  };
  for await (const rows of listStoredHashes(sql, staging, tableId)) for (const row of rows) checkOwner(row, row.owner);
  let [hash, owner]: [string | null, string | null] = [null, null];
  for await (const rows of listSharedHashes(sql, staging)) {
    for (const row of rows) {
      owner = checkOwner(row, row.hash === hash ? owner : null);
      hash = row.hash;
    }
  }
}

/** Whether the first of two proven rounds is earlier. Lines are newest first, so a round without a place is. */
function isBelow(point: Point, other: Point): boolean {
  return point.number === null || other.number === null || point.of !== other.of || point.number < other.number;
}
