/**
 * Signed notes, checkpoints and cosignatures in the C2SP forms (signed-note, tlog-checkpoint, tlog-cosignature), with
 * Ed25519. A verifier key is `<name>+<key id>+<base64 of type and key>`.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";

/** The signature type of a key: that of a log, or that of a witness with its time. */
export type KeyType = "log" | "witness";
const TYPE_BYTE = { log: 1, witness: 4 } as const;

/** A key that checks signatures. */
export interface VerifierKey {
  name: string;
  type: KeyType;
  /** 32 bytes. */
  publicKey: Buffer;
}

/** A key that makes them. */
export interface SignerKey extends VerifierKey {
  privateKey: KeyObject;
}

/** What a log states about itself at some size. */
export interface Checkpoint {
  origin: string;
  size: number;
  root: Buffer;
}

const SIGNATURE = /^— (?<name>[^\s+]+) (?<base64>[A-Za-z0-9+/]+={0,2})$/;
const NAME = /^[^\s+]{1,200}$/;
const NOTE_BYTES_MAX = 64 << 10;
const SIGNATURES_MAX = 50;
const ED25519_BYTES = 64;
/** The fixed beginning of an Ed25519 public key in DER (RFC 8410); 32 bytes of the key follow. */
const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex");

/** The text of a verifier key. */
export function verifierKeyText(key: VerifierKey): string {
  return `${key.name}+${keyId(key).toString("hex")}+${typedKey(key).toString("base64")}`;
}

/** @throws Error when the text is not a verifier key of an Ed25519 log or witness */
export function parseVerifierKey(text: string): VerifierKey {
  const [, name = "", id, base64 = ""] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(text) ?? [];
  const bytes = Buffer.from(base64, "base64");
  const key: VerifierKey = {
    name,
    type: bytes[0] === TYPE_BYTE.witness ? "witness" : "log",
    publicKey: bytes.subarray(1),
  };
  if (bytes[0] !== TYPE_BYTE[key.type] || !NAME.test(name) || bytes.length !== 33 || keyId(key).toString("hex") !== id)
    throw new Error(`expected a verifier key such as example.com/log+8b1a9953+AQ…, found ${JSON.stringify(text)}`);
  return key;
}

/** A signer of an Ed25519 private key in PEM. @throws Error on another kind of key */
export function signerOf(name: string, type: KeyType, pem: string): SignerKey {
  const privateKey = createPrivateKey(pem);
  if (privateKey.asymmetricKeyType !== "ed25519")
    throw new Error(`expected an Ed25519 key, found ${String(privateKey.asymmetricKeyType)}`);
  return { name, type, publicKey: publicKeyOf(privateKey), privateKey };
}

/** The 32 bytes of a private key's public half. */
function publicKeyOf(privateKey: KeyObject): Buffer {
  return createPublicKey(privateKey).export({ type: "spki", format: "der" }).subarray(SPKI_PREFIX.length);
}

/** A checkpoint signed by its log. */
export function signCheckpoint(checkpoint: Checkpoint, key: SignerKey): string {
  const text = checkpointText(checkpoint);
  return `${text}\n${signatureLine(key, sign(null, Buffer.from(text), key.privateKey))}`;
}

/** A witness's signature line for a checkpoint that it has checked, at a time in seconds since 1970. */
export function cosign(note: string, key: SignerKey, seconds: number): string {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(seconds));
  const signed = sign(null, cosignedText(splitNote(note).text, seconds), key.privateKey);
  return signatureLine(key, Buffer.concat([time, signed]));
}

/** The checkpoint of a note. @throws Error unless the note is one signed by the key */
export function openCheckpoint(note: string, key: VerifierKey): Checkpoint {
  const { text } = splitNote(note);
  const checkpoint = parseCheckpoint(text);
  const isSigned = signaturesOf(note, key).some((signature) => isValid(Buffer.from(text), signature, key));
  if (!isSigned) throw new Error(`expected a checkpoint signed by ${verifierKeyText(key)}, found no such signature`);
  return checkpoint;
}

/** When a witness cosigned a note, in seconds since 1970, the earliest; null when it did not, or not validly. */
export function cosignedAt(note: string, key: VerifierKey): number | null {
  const { text } = splitNote(note);
  const times = signaturesOf(note, key).flatMap((signature) => {
    if (signature.length !== 8 + ED25519_BYTES) return [];
    const seconds = Number(signature.readBigUInt64BE());
    return Number.isSafeInteger(seconds) && isValid(cosignedText(text, seconds), signature.subarray(8), key)
      ? [seconds]
      : [];
  });
  return times.length === 0 ? null : Math.min(...times);
}

/** Whether a note has a cosignature at this time by another key than the given ones; it cannot be checked. */
export function hasOtherCosignature(note: string, keys: readonly VerifierKey[], seconds: number): boolean {
  return splitNote(note).lines.some((line) => {
    if (keys.some((key) => signatureOf(line, key) !== null)) return false;
    const bytes = Buffer.from(SIGNATURE.exec(line)?.groups?.["base64"] ?? "", "base64").subarray(4); // after the id of its key
    return bytes.length === 8 + ED25519_BYTES && Number(bytes.readBigUInt64BE()) === seconds;
  });
}

/** Parses the checkpoint in a note, without checking signatures. @throws Error on another form */
export function readCheckpoint(note: string): Checkpoint {
  return parseCheckpoint(splitNote(note).text);
}

function parseCheckpoint(text: string): Checkpoint {
  const [origin = "", size = "", base64 = ""] = text.split("\n");
  const root = Buffer.from(base64, "base64");
  const isSize = /^(?:0|[1-9]\d{0,15})$/.test(size) && Number.isSafeInteger(Number(size));
  if (origin === "" || !isSize || root.length !== 32 || root.toString("base64") !== base64)
    throw new Error("expected a checkpoint of origin, size and root on three lines, found another text");
  return { origin, size: Number(size), root };
}

function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${root.toString("base64")}\n`;
}

/** The signed text of a note, with its last line break, and its signature lines. */
function splitNote(note: string): { text: string; lines: string[] } {
  const end = note.lastIndexOf("\n\n");
  const lines = end === -1 ? [] : note.slice(end + 2).split("\n");
  const isNote = end > 0 && lines.pop() === "" && lines.length > 0 && lines.length <= SIGNATURES_MAX;
  if (!isNote || Buffer.byteLength(note) > NOTE_BYTES_MAX || !lines.every((line) => SIGNATURE.test(line)))
    throw new Error("expected a signed note: a text, an empty line and signatures, found another text");
  return { text: note.slice(0, end + 1), lines };
}

/** The signatures of a note whose name and key id are those of the key. */
function signaturesOf(note: string, key: VerifierKey): Buffer[] {
  return splitNote(note).lines.flatMap((line) => signatureOf(line, key) ?? []);
}

function signatureOf(line: string, key: VerifierKey): Buffer | null {
  const { name, base64 = "" } = SIGNATURE.exec(line)?.groups ?? {};
  const bytes = Buffer.from(base64, "base64");
  return name === key.name && bytes.subarray(0, 4).equals(keyId(key)) ? bytes.subarray(4) : null;
}

function isValid(text: Buffer, signature: Buffer, { publicKey }: VerifierKey): boolean {
  if (signature.length !== ED25519_BYTES) return false;
  const key = createPublicKey({ key: Buffer.concat([SPKI_PREFIX, publicKey]), format: "der", type: "spki" });
  return verify(null, text, key, signature);
}

function cosignedText(text: string, seconds: number): Buffer {
  return Buffer.from(`cosignature/v1\ntime ${seconds}\n${text}`);
}

function signatureLine(key: SignerKey, signature: Buffer): string {
  return `— ${key.name} ${Buffer.concat([keyId(key), signature]).toString("base64")}\n`;
}

function keyId(key: VerifierKey): Buffer {
  return createHash("sha256").update(`${key.name}\n`).update(typedKey(key)).digest().subarray(0, 4);
}

function typedKey({ type, publicKey }: VerifierKey): Buffer {
  return Buffer.concat([Buffer.of(TYPE_BYTE[type]), publicKey]);
}
