import { createHash, randomBytes } from "node:crypto";

/** A token for a mailed or printed link, 256 random bits, and its stored hash. */
export function makeToken(): { token: string; sha256: Buffer } {
  const token = randomBytes(32).toString("base64url");
  return { token, sha256: hashToken(token) };
}

/** The stored hash of a token (SHA-256). */
export function hashToken(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
