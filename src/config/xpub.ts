import { hash } from "node:crypto";
import { createBase58check } from "@scure/base";

/** The BIP-32 version bytes of keys that begin with `xpub`. */
const PUBLIC_VERSION = 0x0488b21e;

/** @scure/bip32 also checks this, but takes 60 ms of a core to load in every command, against 8 ms. */
const base58check = createBase58check((bytes) => hash("sha256", bytes, "buffer"));

/**
 * Returns the problem of an extended public key; null if it is valid. Expects the key of an Ethereum account, which
 * wallets show as `m/44'/60'/0'` (depth 3), or of its receiving addresses, `m/44'/60'/0'/0` (depth 4); both derive the
 * same addresses. Never repeats the text: it may be a private key.
 */
export function xpubProblem(text: string): string | null {
  if (text.startsWith("xprv")) {
    return "expected an extended public key (xpub…), found a private one; remove it from this server, and use another wallet, since others may know the key now";
  }
  if (!/^xpub[1-9A-HJ-NP-Za-km-z]{107}$/.test(text)) {
    return "expected an extended public key of 111 characters that begins with xpub";
  }
  const bytes = decode(text);
  if (bytes === null)
    return "expected an extended public key whose checksum fits, found a mistyped character; copy it from the wallet again";
  if (bytes.readUInt32BE(0) !== PUBLIC_VERSION)
    return "expected a key that begins with xpub, as wallets for Ethereum give it";
  const depth = bytes.readUInt8(4);
  if (depth !== 3 && depth !== 4) {
    return `expected the key of an account, m/44'/60'/0' (depth 3), or of its addresses, m/44'/60'/0'/0 (depth 4), found depth ${depth}`;
  }
  return null;
}

/** The depth of an extended key below the master key; for a key without {@link xpubProblem}. */
export function xpubDepth(text: string): number {
  return decode(text)?.[4] ?? 0;
}

/** Identifies a key without revealing it: the first 16 hex digits of its SHA-256. */
export function xpubFingerprint(text: string): string {
  return hash("sha256", text).slice(0, 16);
}

/** Returns the key without its checksum; null if the checksum is wrong. */
function decode(text: string): Buffer | null {
  try {
    return Buffer.from(base58check.decode(text));
  } catch {
    return null; // its message would repeat a part of the key
  }
}
