import type { Sql } from "../db/client.ts";
import type { Point } from "../houses/fairness/claims.ts";
import type { Anchor, Prover } from "../houses/fairness/prove.ts";
import { loadState } from "../pass/add.ts";
import { anchorOf } from "../pass/read.ts";
import { findProvenAbove } from "../backfill/gap-attempt-store.ts";
import { type ListedRounds, listSharing, nextTurn, ROWS_AT_ONCE } from "./repeats.ts";
import { listHashOwners } from "../rounds/proofs/proof-range-store.ts";
import { numberOf } from "../rounds/round.ts";
import { copied } from "../text.ts";
import type { StagedRound } from "./staged-rounds.ts";
import type { TableSettings } from "../houses/settings/settings.ts";

/** Which lines fail their proof and why, and the newest proven round. */
export interface LineProofs {
  failed: Map<number, string>;
  newest: Anchor | null;
}

/** What the proof of lines needs. */
export interface LineProver extends ListedRounds {
  settings: TableSettings;
  prover: Prover;
}

/** Proves rows with a hash, newest first: each batch then links to the one above it, one walk for the whole file. */
export async function proveLines(sql: Sql, tableId: number, work: LineProver): Promise<LineProofs> {
  const { settings, prover, signal, list, lines } = work;
  const proofs: LineProofs = { failed: new Map(), newest: null };
  const { fairness } = settings;
  if (fairness === undefined) return proofs;
  const { table, head } = await loadState(sql, tableId);
  const anchor = anchorOf(head, fairness);
  proofs.newest = anchor;
  const { roundIds } = table;
  let lowest: Point | null = null;
  for (let to = lines.length; to > 0; to -= ROWS_AT_ONCE) {
    await nextTurn(signal);
    const rounds = list(lines.subarray(Math.max(0, to - ROWS_AT_ONCE), to));
    const claims = rounds.flatMap(({ line, roundId, hash, hundredths }) => {
      const number = roundIds === "consecutive" ? numberOf(roundId) : null;
      if (hash === null || (roundIds === "consecutive" && number === null)) return [];
      return [{ line, number, hash, hundredths }];
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
  if (roundIds === "opaque") await refuseStolen(sql, tableId, work, proofs.failed);
  return proofs;
}

/** If ids are opaque, a hash proves one round only: the stored one that has it, else the first line. */
async function refuseStolen(sql: Sql, tableId: number, work: LineProver, failed: Map<number, string>): Promise<void> {
  const { list, lines, signal } = work;
  const refuseOthers = ({ line, roundId }: StagedRound, owner: string) => {
    if (owner !== roundId && !failed.has(line)) failed.set(line, `the proof fails: the hash is that of ${owner}`);
  };
  for (let from = 0; from < lines.length; from += ROWS_AT_ONCE) {
    await nextTurn(signal);
    const rounds = list(lines.subarray(from, from + ROWS_AT_ONCE));
    const hashes = rounds.map(({ hash }) => hash).filter((hash) => hash !== null);
    if (hashes.length === 0) continue;
    const owners = await listHashOwners(sql, tableId, hashes);
    for (const round of rounds) refuseOthers(round, owners.get(round.hash ?? "") ?? round.roundId);
  }
  const owners = new Map<string, string>();
  for await (const round of listSharing(work, ({ hash }) => hash)) {
    const { line, hash, roundId } = round;
    if (hash === null || failed.has(line)) continue;
    const owner = owners.get(hash);
    if (owner === undefined) owners.set(copied(hash), copied(roundId));
    else refuseOthers(round, owner);
  }
}

/** Whether the first of two proven rounds is earlier. Lines are newest first, so a round without a place is. */
function isBelow(point: Point, other: Point): boolean {
  return point.number === null || other.number === null || point.of !== other.of || point.number < other.number;
}
