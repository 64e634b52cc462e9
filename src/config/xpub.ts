import { hash } from "node:crypto";
import { createBase58check } from "@scure/base";

/** Version bytes of BIP-32: what begins with `xpub`. */
const PUBLIC_VERSION = 0x0488b21e;

/** @scure/bip32 also checks this, but takes 60 ms of a core to load in every command, against 8 ms. */
const base58check = createBase58check((bytes) => hash("sha256", bytes, "buffer"));

/**
 * What is wrong with an extended public key; null if nothing is. Expects the key of an Ethereum account, which wallets
 * show as `m/44'/60'/0'` (depth 3), or of its receiving addresses, `m/44'/60'/0'/0` (depth 4); both derive the same
 * addresses. Never repeats the text: it may be a private key.
 */
export function xpubProblem(text: string): string | null {
  if (text.startsWith("xprv")) {
    return "expected an extended public key (xpub…), got a private one: this server must not have it; consider it known to others now";
  }
  if (!/^xpub[1-9A-HJ-NP-Za-km-z]{107}$/.test(text)) {
    return "expected an extended public key of 111 characters that begins with xpub";
  }
  const bytes = decode(text);
  if (bytes === null) return "expected an extended public key; one of its characters is mistyped";
  if (bytes.readUInt32BE(0) !== PUBLIC_VERSION)
    return "expected a key that begins with xpub, as wallets for Ethereum give it";
  const depth = bytes.readUInt8(4);
  if (depth !== 3 && depth !== 4) {
    return `expected the key of an account, m/44'/60'/0' (depth 3), or of its addresses, m/44'/60'/0'/0 (depth 4), got depth ${depth}`;
  }
  return null;
}

/** How far below the master key an extended key is; for a key without {@link xpubProblem}. */
export function xpubDepth(text: string): number {
  return decode(text)?.[4] ?? 0;
}

/** Identifies a key without revealing it: the first 16 hex digits of its SHA-256. */
export function xpubFingerprint(text: string): string {
  return hash("sha256", text).slice(0, 16);
}

/** The key without its checksum; null if that does not fit. */
function decode(text: string): Buffer | null {
  try {
    return Buffer.from(base58check.decode(text));
  } catch {
    return null; // its message would repeat a part of the key
  }
}
