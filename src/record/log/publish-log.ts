/**
 * Publishes the transparency log: states what changed, extends the tree, and signs a checkpoint over it.
 *
 * The database alone never decides what is signed. A checkpoint must extend the one in the folder of the key, which a
 * restored database cannot undo, and the one that every configured witness holds.
 */
import type { Witness } from "../../config/witnesses.ts";
import type { Sql } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import { listAccuracyStatements } from "./accuracy-statements.ts";
import { keepNewestNote, makeKey, readKey, readNewestNote } from "./log-folder.ts";
import {
  createLog,
  findNewestCheckpoint,
  insertEntries,
  listLogs,
  lockFolder,
  type Log,
  moveSize,
  type NewEntry,
  saveCheckpoint,
} from "./log-store.ts";
import { logNumberOf, originOf } from "./origin.ts";
import { findPendingAudit, listPendingStatements, noteAccuracy, noteHeads } from "./pending-store.ts";
import { findPreviousNote, type KeyFolder } from "./previous-note.ts";
import {
  openCheckpoint,
  readCheckpoint,
  signCheckpoint,
  type SignerKey,
  signerOf,
  verifierKeyText,
} from "../../signed-note.ts";
import { entryOf, type Statement } from "./statements.ts";
import { listEdge, saveTiles, tileReader } from "./tiles-store.ts";
import { growTiles, leafHash, proveConsistency, type ReadTile, rootOf } from "./tree.ts";
import { requestCosignature } from "./witness-client.ts";

/** The folder, address and witnesses of a log. */
export interface Publication {
  /** The folder of the key, LOG_DIR. */
  folder: string;
  /** PUBLIC_URL, whose host begins the origin of a new log. */
  publicUrl: string | undefined;
  witnesses: readonly Witness[];
}

/** Why nothing is signed: what was expected, what was found, and what to do. */
export class LogRefusal extends Error {}

const ADVICE = "restore the newest database or LOG_DIR, or declare a new log with `roundhouse log declare`";

const NO_ACCURACY = { statements: [], stated: [], damaged: [] };

/** Tables stated in one transaction. */
const TABLES_AT_ONCE = 5_000;

/** The numbers of added entries and of witnesses that cosigned, and the tables about whose accuracy nothing was stated. */
export interface Published {
  added: number;
  cosigned: number;
  damaged: string[];
}

/**
 * Adds statements about everything that changed to the log and signs its new size.
 *
 * @throws LogRefusal if a signature could fork the log or a witness is unreachable
 */
export async function publishLog(sql: Sql, publication: Publication, signal: AbortSignal): Promise<Published> {
  const { log, signer } = await openLog(sql, publication);
  const { publicKey } = signer;
  const witnessKeys = publication.witnesses.map(({ key }) => verifierKeyText(key));
  const keyFolder = { folder: publication.folder, publicKey };
  const { added, damaged } = await addStatements(sql, log, { keyFolder, witnessKeys }, signal);
  const size = log.size + added;
  const newest = await findNewestCheckpoint(sql, log.id);
  const isCosigned = publication.witnesses.length === 0 || newest?.cosignedAt !== null;
  if (newest?.size === size && isCosigned) return { added, cosigned: 0, damaged };
  const readTile = tileReader(sql, log.id);
  const root = await rootOf(readTile, size);
  const kept = await readNewestNote(publication.folder);
  const signed = await checkKept(publication.folder, kept, { log, signer, readTile, size, isSigned: newest !== null });
  const ask = (witness: Witness, request: { note: string; old: number; proof: readonly Buffer[] }) =>
    requestCosignature(witness, request, signal).catch((error: unknown) => {
      throw new LogRefusal(
        `expected witness ${witness.key.name} to be reachable at ${witness.url}, found: ${reasonOf(error)}; nothing is ` +
          "signed without it: repair it, or remove it from LOG_WITNESSES",
      );
    });
  for (const witness of publication.witnesses) {
    if (signed === null) break;
    const reply = await ask(witness, { note: signed.note, old: signed.size, proof: [] });
    if ("holds" in reply && reply.holds > signed.size) throw witnessAhead(witness, reply.holds, signed.size);
  }
  const note = signCheckpoint({ origin: log.origin, size, root }, signer);
  const isCovered = await sql.begin(async (tx) => {
    await lockFolder(tx);
    // witnesses take seconds: a run that began later may have signed a larger size, which no smaller one may replace
    const now = await readNewestNote(publication.folder);
    if (now !== kept) return coversOrThrow(now, log.origin, size);
    await keepNewestNote(publication.folder, note, kept, async () => {
      signal.throwIfAborted();
      await lockFolder(tx); // fails if PostgreSQL ended the transaction
    });
    return false;
  });
  if (isCovered) return { added, cosigned: 0, damaged };
  const replies = [];
  for (const witness of publication.witnesses) {
    const from = async (old: number) => ask(witness, { note, old, proof: await proveConsistency(readTile, old, size) });
    let reply = await from(signed?.size ?? 0);
    if ("holds" in reply && reply.holds <= (signed?.size ?? 0)) reply = await from(reply.holds);
    if ("holds" in reply) throw witnessAhead(witness, reply.holds, signed?.size ?? 0);
    replies.push(reply);
  }
  const cosignatures = replies.map(({ line }) => `${line}\n`).join("");
  const cosignedAt = replies.length === 0 ? null : Math.min(...replies.map(({ seconds }) => seconds));
  await saveCheckpoint(sql, log.id, { size, note: note + cosignatures, cosignedAt });
  return { added, cosigned: replies.length, damaged };
}

/** True: another run signed at least this size meanwhile. @throws Error if it signed something else */
function coversOrThrow(note: string | null, origin: string, size: number): true {
  const found = note === null ? null : readCheckpoint(note);
  if (found?.origin === origin && found.size >= size) return true;
  throw new Error(`expected a checkpoint of ${origin} with ${size} entries or more, found ${note ?? "none"}`);
}

function witnessAhead({ key }: Witness, holds: number, size: number): LogRefusal {
  return new LogRefusal(
    `expected witness ${key.name} to hold at most ${size} entries, found ${holds}: the database was restored from a ` +
      `backup; ${ADVICE}`,
  );
}

/** The newest log and its signer; creates key and log at the first start. */
async function openLog(
  sql: Sql,
  { folder, publicUrl }: Pick<Publication, "folder" | "publicUrl">,
): Promise<{ log: Log; signer: SignerKey }> {
  const [log] = await listLogs(sql);
  if (log !== undefined) {
    const pem = await readKey(folder);
    if (pem === null)
      throw new LogRefusal(
        `expected the key of the log ${log.origin} in ${folder}, found none: share LOG_DIR between workers, or restore it`,
      );
    const signer = signerOf(log.origin, "log", pem);
    if (signer.publicKey.equals(log.publicKey)) return { log, signer };
    throw new LogRefusal(
      `expected the key of the log ${log.origin} in ${folder}, found another one: restore it, or declare a new log`,
    );
  }
  if ((await readNewestNote(folder)) !== null)
    throw new LogRefusal(
      `expected no log yet, since the database has none, found a signed checkpoint in ${folder}: the database was ` +
        "emptied or is another one; declare a new log with `roundhouse log declare`, or set LOG_DIR to an empty folder",
    );
  const pem = await makeKey(folder);
  const { publicKey } = signerOf("new", "log", pem);
  const origin = originOf(publicUrl, publicKey, 1);
  await sql.begin((tx) => createLog(tx, { id: 1, origin, publicKey, by: null, reason: null }));
  return openLog(sql, { folder, publicUrl });
}

/** Appends statements about everything that changed since the last ones. */
async function addStatements(
  sql: Sql,
  log: Log,
  { keyFolder, witnessKeys }: { keyFolder: KeyFolder; witnessKeys: string[] },
  signal: AbortSignal,
): Promise<Omit<Published, "cosigned">> {
  let size = log.size;
  let auditSeq = log.auditSeq;
  const first = size === 0 ? await firstStatement(sql, log, keyFolder) : null;
  for (;;) {
    signal.throwIfAborted();
    const tables = await listPendingStatements(sql, log.id, TABLES_AT_ONCE);
    const audit = await findPendingAudit(sql, { ...log, auditSeq });
    const {
      statements: accuracy,
      stated,
      damaged,
    } = tables.length < TABLES_AT_ONCE ? await listAccuracyStatements(sql, log.id) : NO_ACCURACY;
    const entries = [
      ...(size === 0 && first !== null ? [entry(first)] : []),
      ...tables.filter(({ isNew }) => isNew).map((one) => entry(one.statement, one.tableId)),
      ...(audit === null ? [] : [entry(audit)]),
      ...accuracy.map(({ statement, tableId }) => entry(statement, tableId)),
      ...(accuracy.length > 0 && witnessKeys.length > 0 ? [entry({ kind: "witnesses", keys: witnessKeys })] : []),
    ];
    const isAccuracyRead = stated.length + damaged.length > 0;
    if (entries.length === 0 && tables.length === 0 && !isAccuracyRead) return { added: size - log.size, damaged };
    const to = size + entries.length;
    if (audit !== null) auditSeq = BigInt(audit.seq);
    const isMoved = await sql.begin(async (tx) => {
      if (!(await moveSize(tx, { id: log.id, size, to, auditSeq }))) return false;
      await insertEntries(tx, log.id, size, entries);
      await noteHeads(tx, log.id, tables);
      if (isAccuracyRead) await noteAccuracy(tx, log.id, stated);
      const leaves = entries.map((one) => leafHash(Buffer.from(one.entry)));
      await saveTiles(tx, log.id, growTiles(await listEdge(tx, log.id), leaves));
      return true;
    });
    if (!isMoved)
      throw new Error(`expected log ${log.origin} at ${size} entries, found that another worker added to it`);
    size = to;
    if (tables.length < TABLES_AT_ONCE) return { added: size - log.size, damaged };
  }
}

async function firstStatement(sql: Sql, log: Log, keyFolder: KeyFolder): Promise<Statement> {
  const previous = await findPreviousNote(sql, log, keyFolder);
  return { kind: "log", origin: log.origin, previous, reason: log.reason ?? "" };
}

function entry(statement: Statement, tableId: number | null = null): NewEntry {
  const forecastSeq = statement.kind === "table" ? BigInt(statement.forecast_seq) : null;
  return { tableId, forecastSeq, entry: entryOf(statement) };
}

/**
 * The newest checkpoint that was signed in the folder, from its note; null before the first of this log.
 *
 * @throws LogRefusal unless the log at `size` extends it
 */
async function checkKept(
  folder: string,
  note: string | null,
  log: { log: Log; signer: SignerKey; readTile: ReadTile; size: number; isSigned: boolean },
): Promise<{ note: string; size: number } | null> {
  const { signer, readTile, size, isSigned } = log;
  const { id, origin } = log.log;
  const found = note === null ? null : readCheckpoint(note).origin;
  if (note === null || found === null || logNumberOf(found) < id) {
    if (!isSigned) return null;
    throw new LogRefusal(`expected the newest checkpoint of ${origin} in ${folder}, found none: ${ADVICE}`);
  }
  if (found !== origin)
    throw new LogRefusal(`expected the newest checkpoint of ${origin} in ${folder}, found one of ${found}: ${ADVICE}`);
  const signed = openCheckpoint(note, signer);
  if (signed.size > size)
    throw new LogRefusal(
      `expected at least ${signed.size} entries in the log, as signed before, found ${size}: the database was restored ` +
        `from a backup; ${ADVICE}`,
    );
  if (!(await rootOf(readTile, signed.size)).equals(signed.root))
    throw new LogRefusal(
      `expected the root that was signed at ${signed.size} entries, found another one: the log was changed; ${ADVICE}`,
    );
  return { note, size: signed.size };
}
