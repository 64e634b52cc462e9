/**
 * Signatures of requests and notifications, by the payment app's public specification: over the time, a nonce and the
 * exact body, each followed by a line feed. Requests use HMAC-SHA512 with the secret, in capital hex; notifications use
 * RSA with SHA-256, in base64.
 */
import { createHmac, createPublicKey, randomInt, verify } from "node:crypto";
import type { BinancePay } from "../../config/binance-pay.ts";

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** The signed parts. */
export interface SignedParts {
  /** Milliseconds since 1970, as text. */
  timestamp: string;
  nonce: string;
  /** The exact bytes of the body. */
  body: Uint8Array;
}

/** Returns the headers of a request, with its signature. */
export function signedHeaders(
  { key, secret }: Pick<BinancePay, "key" | "secret">,
  parts: SignedParts,
): Record<string, string> {
  return {
    "content-type": "application/json",
    "BinancePay-Timestamp": parts.timestamp,
    "BinancePay-Nonce": parts.nonce,
    "BinancePay-Certificate-SN": key,
    "BinancePay-Signature": createHmac("sha512", secret).update(signedBytes(parts)).digest("hex").toUpperCase(),
  };
}

/**
 * Whether a notification was signed with the private half of a public key (PEM); false if the key or signature is
 * malformed.
 */
export function isSignedWith(publicKey: string, signature: string, parts: SignedParts): boolean {
  try {
    return verify("sha256", signedBytes(parts), createPublicKey(publicKey), Buffer.from(signature, "base64"));
  } catch {
    return false; // what does not even read as a key has signed nothing
  }
}

/** Whether a text is a public RSA key. */
export function isPublicKey(text: string): boolean {
  try {
    return createPublicKey(text).asymmetricKeyType === "rsa";
  } catch {
    return false;
  }
}

/** Returns 32 random letters. */
export function newNonce(): string {
  return Array.from({ length: 32 }, () => LETTERS[randomInt(LETTERS.length)]).join("");
}

/** The signed bytes: time, nonce and body, each followed by a line feed. */
function signedBytes({ timestamp, nonce, body }: SignedParts): Buffer {
  return Buffer.concat([Buffer.from(`${timestamp}\n${nonce}\n`), body, Buffer.from("\n")]);
}
