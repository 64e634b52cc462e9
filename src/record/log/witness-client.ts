/** Asks witnesses for cosignatures (C2SP tlog-witness). */
import { cosignedAt, parseVerifierKey, type VerifierKey } from "../../signed-note.ts";

/** A witness as configured. */
export interface Witness {
  key: VerifierKey;
  /** The address whose `/add-checkpoint` is asked. */
  url: string;
}

/** What a witness did with a checkpoint: a valid cosignature line and its time, or the size that it holds instead. */
export type WitnessReply = { line: string; seconds: number } | { holds: number };

const DEADLINE_MS = 5_000;
const REPLY_BYTES_MAX = 64 << 10;

/**
 * The witnesses of `LOG_WITNESSES`: verifier key and address, separated by a space, with commas between witnesses.
 * @throws Error that names the wrong one
 */
export function parseWitnesses(text: string): Witness[] {
  const parts = text.split(",").map((part) => part.trim());
  return parts.flatMap((part) => {
    if (part === "") return [];
    const [keyText = "", url = "", ...more] = part.split(/\s+/);
    const key = parseVerifierKey(keyText);
    const isAddress = URL.canParse(url) && ["http:", "https:"].includes(new URL(url).protocol);
    if (!isAddress || more.length > 0 || key.type !== "witness")
      throw new Error(`expected a witness's verifier key, a space and its address, found ${JSON.stringify(part)}`);
    return [{ key, url: url.replace(/\/+$/, "") }];
  });
}

/**
 * Offers a signed checkpoint to a witness, with the proof that it grows from the size `old` that the witness holds.
 * @throws Error when the witness cannot be reached within 5 s, refuses, or its cosignature is not valid
 */
export async function askWitness(
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
