/**
 * A witness: stores the newest checkpoint of each log it received, and cosigns only a checkpoint that extends it (C2SP
 * tlog-witness). Its file is on disk before a cosignature is sent.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../../errors.ts";
import { replaceFile } from "./log-folder.ts";
import {
  type Checkpoint,
  cosign,
  openCheckpoint,
  readCheckpoint,
  type SignerKey,
  type VerifierKey,
} from "../../signed-note.ts";
import { verifyConsistency } from "./tree.ts";

/** A response of `/add-checkpoint`. */
export interface WitnessResponse {
  status: 200 | 400 | 403 | 404 | 409 | 422;
  type: "text/plain; charset=utf-8" | "text/x.tlog.size";
  text: string;
}

/** Takes the body of a request to `/add-checkpoint`. */
export type AddCheckpoint = (body: string) => Promise<WitnessResponse>;

/** By origin, the newest checkpoint note that was cosigned. */
type Kept = Record<string, string>;

const PROOF_HASHES_MAX = 63;

/**
 * Opens a witness on its folder, for the logs of the given keys. Requests are processed one after another.
 *
 * @throws Error if the file of the folder is damaged
 */
export async function openWitness(
  folder: string,
  { key, logs, now = Date.now }: { key: SignerKey; logs: readonly VerifierKey[]; now?: () => number },
): Promise<AddCheckpoint> {
  const path = join(folder, "witness.json");
  const kept = await readKept(path);
  let last: Promise<unknown> = Promise.resolve();

  async function add(body: string): Promise<WitnessResponse> {
    const request = parseRequest(body);
    if (request === null) return refuse(400, "expected old <size>, a proof, an empty line and a signed checkpoint");
    const { old, proof, note } = request;
    const log = logs.find(({ name }) => name === originOf(note));
    if (log === undefined) return refuse(404, "this witness does not know the log");
    let checkpoint: Checkpoint;
    try {
      checkpoint = openCheckpoint(note, log);
    } catch {
      return refuse(403, "expected a checkpoint that the log signed");
    }
    const newest = kept[log.name] === undefined ? null : readCheckpoint(kept[log.name] ?? "");
    if (old !== (newest?.size ?? 0)) return { status: 409, type: "text/x.tlog.size", text: `${newest?.size ?? 0}\n` };
    if (old > checkpoint.size) return refuse(400, "expected a checkpoint of the old size or a larger one");
    const sizes = { oldSize: old, size: checkpoint.size, proof };
    if (!verifyConsistency(sizes, newest?.root ?? Buffer.alloc(32), checkpoint.root))
      return refuse(422, "expected a checkpoint that extends the cosigned one: the log was changed");
    kept[log.name] = note;
    await replaceFile(path, `${JSON.stringify(kept)}\n`);
    const text = cosign(note, key, Math.floor(now() / 1000));
    return { status: 200, type: "text/plain; charset=utf-8", text };
  }

  return (body) => {
    const response = last.then(() => add(body));
    last = response.catch(() => undefined);
    return response;
  };
}

function parseRequest(body: string): { old: number; proof: Buffer[]; note: string } | null {
  const end = body.indexOf("\n\n");
  const [first = "", ...hashes] = body.slice(0, Math.max(end, 0)).split("\n");
  const [, old] = /^old (0|[1-9]\d{0,15})$/.exec(first) ?? [];
  const proof = hashes.map((text) => Buffer.from(text, "base64"));
  const isProof = proof.length <= PROOF_HASHES_MAX && proof.every(({ length }) => length === 32);
  return old === undefined || !isProof ? null : { old: Number(old), proof, note: body.slice(end + 2) };
}

function originOf(note: string): string | null {
  try {
    return readCheckpoint(note).origin;
  } catch {
    return null;
  }
}

function refuse(status: WitnessResponse["status"], text: string): WitnessResponse {
  return { status, type: "text/plain; charset=utf-8", text: `${text}\n` };
}

async function readKept(path: string): Promise<Kept> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return {};
    throw error;
  }
  const kept = JSON.parse(text) as Kept;
  for (const note of Object.values(kept)) readCheckpoint(note);
  return kept;
}
