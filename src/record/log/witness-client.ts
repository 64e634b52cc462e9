/** Asks witnesses for cosignatures (C2SP tlog-witness). */
import type { Witness } from "../../config/witnesses.ts";
import { cosignedAt } from "../../signed-note.ts";

/** What a witness did with a checkpoint: a valid cosignature line and its time, or the size that it holds instead. */
export type WitnessReply = { line: string; seconds: number } | { holds: number };

const DEADLINE_MS = 5_000;
const REPLY_BYTES_MAX = 64 << 10;

/**
 * Offers a signed checkpoint to a witness, with the proof that it extends the size `old` that the witness holds.
 *
 * @throws Error if the witness does not respond within 5 s, refuses, or returns an invalid cosignature
 */
export async function requestCosignature(
  { key, url }: Witness,
  { note, old, proof }: { note: string; old: number; proof: readonly Buffer[] },
  signal: AbortSignal,
): Promise<WitnessReply> {
  const lines = [`old ${old}`, ...proof.map((hash) => hash.toString("base64"))];
  const response = await fetch(`${url}/add-checkpoint`, {
    method: "POST",
    body: `${lines.join("\n")}\n\n${note}`,
    redirect: "error",
    signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
  });
  const text = await readBounded(response);
  if (response.status === 409 && /^\d{1,16}\n$/.test(text)) return { holds: Number(text) };
  if (response.status !== 200)
    throw new Error(
      `expected a cosignature of witness ${key.name}, found status ${response.status}: ${text.slice(0, 200)}`,
    );
  const line = text.split("\n").find((one) => one.startsWith(`— ${key.name} `));
  const seconds = line === undefined ? null : cosignedAt(`${note}${line}\n`, key);
  if (line === undefined || seconds === null)
    throw new Error(`expected a valid cosignature of witness ${key.name}, found another reply`);
  return { line, seconds };
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > REPLY_BYTES_MAX)
      throw new Error(`expected at most ${REPLY_BYTES_MAX} bytes from a witness, found more`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
