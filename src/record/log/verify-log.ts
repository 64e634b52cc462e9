import type { Witness } from "../../config/witnesses.ts";
import type { Transaction } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import { listEntries, listLogs, type Log } from "./log-store.ts";
import {
  type Checkpoint,
  cosignedAt,
  hasOtherCosignature,
  openCheckpoint,
  readCheckpoint,
  type VerifierKey,
} from "../../signed-note.ts";
import { findTile, tileReader } from "./tiles-store.ts";
import { growTiles, leafHash, rootOf, type Tile, TILE_WIDTH } from "./tree.ts";
import { findContradictedAccuracy } from "./verify-accuracy.ts";
import {
  type ContradictedStatement,
  findContradictedAudit,
  findContradictedTable,
  findMisfiledEntry,
  findUnstated,
  listCheckpoints,
} from "./verify-log-store.ts";

/** The first error in the transparency log, or contradiction with the rows. */
export interface LogFailure {
  kind: "log_statement" | "log" | "checkpoint";
  id: string;
  expected: string;
  found: string;
}

const TILES_PER_READ = 40;
const CHECKPOINTS_PER_READ = 1_000;
/** The log is signed every ten seconds. */
const UNSTATED_MINUTES = 5;

/**
 * Compares a table's rows with every statement about its chains and the newest about its accuracy. Expects chains and
 * accuracy to be verified.
 */
export async function verifyTableStatements(
  tx: Transaction,
  table: { id: number; name: string },
): Promise<LogFailure | null> {
  const wrong = (await findContradictedTable(tx, table)) ?? (await findContradictedAccuracy(tx, table.id));
  return statementFailure(wrong, table.name);
}

/**
 * Recomputes every log: each tile from its entries, and the root of each checkpoint, which the log's key must have
 * signed. Checks cosignatures of the given witnesses, and that every entry is filed under the table that it names.
 * Returns the numbers of entries, and of checkpoints whose time of cosigning is by a key that is not given.
 */
export async function verifyLogs(
  tx: Transaction,
  { witnesses, progress }: { witnesses: readonly Witness[]; progress: (done: number, total: number) => void },
): Promise<{ entries: number; unknownCosignatures: number; failure: LogFailure | null }> {
  let entries = 0;
  let unknownCosignatures = 0;
  for (const log of await listLogs(tx)) {
    const noteUnknown = () => (unknownCosignatures += 1);
    const failure =
      (await verifyTiles(tx, log, (done) => progress(done, log.size))) ??
      (await verifyCheckpoints(tx, log, { witnesses, noteUnknown }));
    if (failure !== null) return { entries, unknownCosignatures, failure };
    entries += log.size;
  }
  const failure =
    statementFailure(await findMisfiledEntry(tx), "the table that its columns name") ??
    statementFailure(await findContradictedAudit(tx), "audit log");
  return { entries, unknownCosignatures, failure };
}

/** Forecasts that no signed checkpoint of the newest log covers, and why that is no failure. */
export interface Unstated {
  since: string;
  reason: "no log" | "paused";
}

/**
 * Checks that the newest log states the forecasts of all tables, or of one. It fails if forecasts are missing for more
 * than five minutes in which the log was signed, or in which others were issued. Without a signed log, and while the
 * queue that signs it is paused, the forecasts are returned and are no failure.
 */
export async function verifyStated(
  tx: Transaction,
  tableId: number | undefined,
): Promise<{ failure: LogFailure | null; unstated: Unstated | null }> {
  const found = await findUnstated(tx, { tableId, graceMinutes: UNSTATED_MINUTES });
  const { table, since, signedAt, isPaused, isSignedLater, isIssuedLater } = found ?? {};
  if (since === undefined || (!isSignedLater && !isIssuedLater)) return { failure: null, unstated: null };
  if (signedAt === null) return { failure: null, unstated: { since, reason: "no log" } };
  if (!isSignedLater && isPaused) return { failure: null, unstated: { since, reason: "paused" } };
  const failure: LogFailure = {
    kind: "log_statement",
    id: `about ${table}`,
    expected: `a signed statement soon after ${since}, when forecasts were issued`,
    found: `none; the log was last signed at ${signedAt}`,
  };
  return { failure, unstated: null };
}

/** Proves that everything that an older checkpoint covers is still in the log, unchanged. */
export async function verifyKeptCheckpoint(tx: Transaction, note: string): Promise<LogFailure | null> {
  let kept: Checkpoint;
  try {
    kept = readCheckpoint(note);
  } catch (error) {
    return { kind: "checkpoint", id: "given", expected: "a checkpoint", found: reasonOf(error) };
  }
  const fail = (expected: string, found: string): LogFailure => ({
    kind: "checkpoint",
    id: `${kept.origin} ${kept.size}`,
    expected,
    found,
  });
  const log = (await listLogs(tx)).find(({ origin }) => origin === kept.origin);
  if (log === undefined) return fail(`a log of the origin ${kept.origin}`, "none");
  try {
    openCheckpoint(note, keyOf(log));
  } catch (error) {
    return fail("a checkpoint that this log signed", reasonOf(error));
  }
  if (kept.size > log.size) return fail(`at least ${kept.size} entries`, `${log.size}: entries were removed`);
  const root = (await rootOf(tileReader(tx, log.id), kept.size)).toString("base64");
  return root === kept.root.toString("base64") ? null : fail(`root ${kept.root.toString("base64")}`, `root ${root}`);
}

/** The key that a log's checkpoints are signed with. */
export function keyOf({ origin, publicKey }: Pick<Log, "origin" | "publicKey">): VerifierKey {
  return { name: origin, type: "log", publicKey };
}

function statementFailure(wrong: ContradictedStatement | null, of: string): LogFailure | null {
  if (wrong === null) return null;
  const { index, part, stated, found } = wrong;
  return {
    kind: "log_statement",
    id: `${index} about ${of}`,
    expected: `${part} ${stated}`,
    found: `${part} ${found ?? "of no row"}`,
  };
}

async function verifyTiles(tx: Transaction, log: Log, progress: (done: number) => void): Promise<LogFailure | null> {
  const fail = (id: string, expected: string, found: string): LogFailure => ({ kind: "log", id, expected, found });
  let edge: Tile[] = [];
  let size = 0;
  for (;;) {
    const entries = await listEntries(tx, log.id, size, TILES_PER_READ * TILE_WIDTH);
    const grown = growTiles(
      edge,
      entries.map((entry) => leafHash(Buffer.from(entry))),
    );
    size += entries.length;
    const isLast = entries.length < TILES_PER_READ * TILE_WIDTH;
    const last = new Map(edge.map((tile) => [tile.level, tile]));
    for (const tile of grown) last.set(tile.level, tile);
    edge = [...last.values()];
    // a tile that still grows is compared when it is full, or at the end
    for (const tile of isLast ? [...grown, ...edge] : grown) {
      const isFull = tile.hashes.length === TILE_WIDTH * 32;
      if (!isFull && !isLast) continue;
      const stored = await findTile(tx, log.id, tile.level, tile.n);
      if (stored === null || !stored.equals(tile.hashes))
        return fail(
          `tile ${tile.level}/${tile.n} of ${log.origin}`,
          "the hashes of its entries",
          stored === null ? "none" : "others",
        );
    }
    progress(size);
    if (isLast) break;
  }
  return size === log.size ? null : fail(log.origin, `${log.size} entries`, String(size));
}

async function verifyCheckpoints(
  tx: Transaction,
  log: Log,
  { witnesses, noteUnknown }: { witnesses: readonly Witness[]; noteUnknown: () => void },
): Promise<LogFailure | null> {
  const readTile = tileReader(tx, log.id);
  for (let after = -1; ;) {
    const page = await listCheckpoints(tx, { logId: log.id, after, limit: CHECKPOINTS_PER_READ });
    for (const { size, note, cosignedSeconds } of page) {
      const fail = (expected: string, found: string): LogFailure => ({
        kind: "checkpoint",
        id: `${log.origin} ${size}`,
        expected,
        found,
      });
      try {
        const signed = openCheckpoint(note, keyOf(log));
        const isOurs = signed.origin === log.origin && signed.size === size && size <= log.size;
        if (!isOurs) return fail(`a checkpoint of ${log.origin} at ${size}`, `${signed.origin} at ${signed.size}`);
        const root = await rootOf(readTile, size);
        if (!root.equals(signed.root))
          return fail(`root ${root.toString("base64")}`, `root ${signed.root.toString("base64")}`);
      } catch (error) {
        return fail("a checkpoint that the log signed", reasonOf(error));
      }
      const keys = witnesses.map(({ key }) => key);
      const times = keys.map((key) => cosignedAt(note, key)).filter((seconds) => seconds !== null);
      const earliest = times.length === 0 ? null : Math.min(...times);
      if (cosignedSeconds === null || (earliest !== null && cosignedSeconds >= earliest)) continue;
      // of a witness that was removed from the configuration, or invented: which of both is unknown
      if (!hasOtherCosignature(note, [keyOf(log), ...keys], cosignedSeconds))
        return fail(earliest === null ? "no cosignature" : `cosigned at ${earliest}`, `cosigned at ${cosignedSeconds}`);
      noteUnknown();
    }
    const last = page.at(-1);
    if (last === undefined) return null;
    after = last.size;
  }
}
