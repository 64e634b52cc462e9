import { createHmac, createSecretKey, hash, hkdfSync, type KeyObject } from "node:crypto";

/** The content codings of responses; null is identity. */
const ENCODINGS = [null, "br", "gzip"] as const;

/** The content coding of a response. */
export type Encoding = (typeof ENCODINGS)[number];

/** Returns a strong ETag of these texts, the same in every process. */
export function etagOf(texts: readonly string[]): string {
  return `"${hash("sha1", texts.join("\n"), "base64url")}"`;
}

/** The key of ETags; all API processes behind one address need the same one. */
export type EtagKey = KeyObject;

/** Derives the key for ETags from AUTH_SECRET (HKDF-SHA-256). */
export function etagKeyOf(secret: string): EtagKey {
  return createSecretKey(Buffer.from(hkdfSync("sha256", secret, "", "roundhouse etag", 32)));
}

/** Returns an ETag that reveals nothing about the contents without the key: HMAC-SHA-256, 32 bytes. */
export function keyedEtag(key: EtagKey, etag: string): string {
  return `"${createHmac("sha256", key).update(etag).digest("base64url")}"`;
}

/**
 * Returns the ETag of the same contents in a content coding: a strong ETag must differ for different bytes.
 *
 * @example
 * encodedEtag('"a"', "br"); // => '"a-br"'
 * encodedEtag('"a"', null); // => '"a"'
 */
export function encodedEtag(etag: string, encoding: Encoding): string {
  return encoding === null ? etag : `${etag.slice(0, -1)}-${encoding}"`;
}

/**
 * Returns the ETag of these contents, in any coding, that an If-None-Match header lists; null if it lists none. `*`
 * does not count: it does not prove that the caller has this version, and a 304 would reveal the ETag of contents that
 * were never paid for.
 *
 * @example
 * namedEtag('"a-gzip"', '"a"'); // => '"a-gzip"'
 * namedEtag('"b", W/"a"', '"a"'); // => '"a"'
 * namedEtag("*", '"a"'); // => null
 * namedEtag('"a-zip"', '"a"'); // => null
 */
export function namedEtag(ifNoneMatch: string, etag: string): string | null {
  const named = tagsIn(ifNoneMatch);
  return ENCODINGS.map((encoding) => encodedEtag(etag, encoding)).find((one) => named.includes(one)) ?? null;
}

/**
 * Whether an If-None-Match header lists this ETag, so that the caller has the current version.
 *
 * Express' own comparison is not used: it sends 200 to requests with `Cache-Control: no-cache`, which fetch adds
 * whenever a program sets If-None-Match itself. The comparison is weak, as RFC 9110 requires for this header.
 *
 * @example
 * isNamed('"a"', '"a"'); // => true
 * isNamed('"b", W/"a"', '"a"'); // => true
 * isNamed("*", '"a"'); // => true
 * isNamed('"b"', '"a"'); // => false
 * isNamed(undefined, '"a"'); // => false
 */
export function isNamed(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === "*") return true;
  return tagsIn(ifNoneMatch).includes(etag);
}

function tagsIn(header: string): string[] {
  return header.match(/"[^"]*"/g) ?? [];
}
