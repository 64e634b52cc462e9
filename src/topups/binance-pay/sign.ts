/**
 * How requests to the payment app and notices from it are signed, by its public specification: both over the time, a
 * nonce and the body as it is sent, each followed by a line feed; ours with HMAC-SHA512 under the secret, in capital hex,
 * theirs with RSA and SHA-256, in base64.
 */
import { createHmac, createPublicKey, randomInt, verify } from "node:crypto";
import type { BinancePay } from "../../config/binance-pay.ts";

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** What is signed. */
export interface SignedParts {
  /** Milliseconds since 1970, as text. */
  timestamp: string;
  nonce: string;
  /** The bytes of the body, as they are sent. */
  body: Uint8Array;
}

/** The headers of a request, with its signature. */
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

/** Whether a notice was signed with the private half of a public key (PEM); false where the key or the signature is none. */
export function isSignedWith(publicKey: string, signature: string, parts: SignedParts): boolean {
  try {
    return verify("sha256", signedBytes(parts), createPublicKey(publicKey), Buffer.from(signature, "base64"));
  } catch {
    return false; // what does not even read as a key has signed nothing
  }
}

/** Whether a text is a public RSA key that notices can be checked with. */
export function isPublicKey(text: string): boolean {
  try {
    return createPublicKey(text).asymmetricKeyType === "rsa";
  } catch {
    return false;
  }
}

/** 32 random letters. */
export function newNonce(): string {
  return Array.from({ length: 32 }, () => LETTERS[randomInt(LETTERS.length)]).join("");
}

/** The bytes under a signature: time, nonce and body, each with a line feed after it. */
function signedBytes({ timestamp, nonce, body }: SignedParts): Buffer {
  return Buffer.concat([Buffer.from(`${timestamp}\n${nonce}\n`), body, Buffer.from("\n")]);
}
