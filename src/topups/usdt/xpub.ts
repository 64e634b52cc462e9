import { hash } from "node:crypto";

const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/** Version bytes of BIP-32: what begins with `xpub`. */
const PUBLIC_VERSION = 0x0488b21e;
const LENGTH = 78;
const CHECK_LENGTH = 4;

/**
 * What is wrong with an extended public key; null where nothing is. Expected is that of an Ethereum account, which wallets
 * give as `m/44'/60'/0'` (depth 3), or of its receiving addresses, `m/44'/60'/0'/0` (depth 4); both lead to the same ones.
 * Never repeats what it was given: somebody may have taken the private key.
 */
export function xpubProblem(text: string): string | null {
  if (text.startsWith("xprv")) {
    return "expected an extended public key (xpub…), got a private one: this server must not have it; consider it known to others now";
  }
  const bytes = decode(text);
  if (bytes === null) return "expected an extended public key of 111 characters that begins with xpub";
  const body = bytes.subarray(0, LENGTH);
  const check = Buffer.from(hash("sha256", hash("sha256", body, "buffer"), "buffer")).subarray(0, CHECK_LENGTH);
  if (!check.equals(bytes.subarray(LENGTH)))
    return "expected an extended public key; one of its characters is mistyped";
  if (body.readUInt32BE(0) !== PUBLIC_VERSION)
    return "expected a key that begins with xpub, as wallets for Ethereum give it";
  const depth = xpubDepth(text);
  if (depth !== 3 && depth !== 4) {
    return `expected the key of an account, m/44'/60'/0' (depth 3), or of its addresses, m/44'/60'/0'/0 (depth 4), got depth ${depth}`;
  }
  return null;
}

/** How far below the master key an extended key is; for one that {@link xpubProblem} finds nothing wrong with. */
export function xpubDepth(text: string): number {
  return decode(text)?.[4] ?? 0;
}

/** What tells one key from another without telling it: the first 16 hex digits of its SHA-256. */
export function xpubFingerprint(text: string): string {
  return hash("sha256", text).slice(0, 16);
}

function decode(text: string): Buffer | null {
  if (!/^xpub[1-9A-HJ-NP-Za-km-z]{107}$/.test(text)) return null;
  let value = 0n;
  for (const letter of text) value = value * 58n + BigInt(ALPHABET.indexOf(letter));
  const hex = value.toString(16).padStart((LENGTH + CHECK_LENGTH) * 2, "0");
  return hex.length === (LENGTH + CHECK_LENGTH) * 2 ? Buffer.from(hex, "hex") : null;
}
