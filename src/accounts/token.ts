import { createHash, randomBytes } from "node:crypto";

/** A token for a link in a mail, 256 random bits, and what is kept of it. */
export function makeToken(): { token: string; sha256: Buffer } {
  const token = randomBytes(32).toString("base64url");
  return { token, sha256: hashToken(token) };
}

/** What is kept of a token. */
export function hashToken(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
