import { createHmac, createSecretKey, hash, hkdfSync, type KeyObject } from "node:crypto";

/** The content codings of answers; null is identity. */
const ENCODINGS = [null, "br", "gzip"] as const;

/** The content coding of an answer. */
export type Encoding = (typeof ENCODINGS)[number];

/** A strong ETag for whatever these texts stand for together; the same texts give the same one in every process. */
export function etagOf(texts: readonly string[]): string {
  return `"${hash("sha1", texts.join("\n"), "base64url")}"`;
}

/** What ETags are keyed with; all API processes behind one address need the same. */
export type EtagKey = KeyObject;

/** Derives the key for ETags from AUTH_SECRET (HKDF-SHA-256). */
export function etagKeyOf(secret: string): EtagKey {
  return createSecretKey(Buffer.from(hkdfSync("sha256", secret, "", "roundhouse etag", 32)));
}

/** An ETag that reveals nothing about the contents without the key: HMAC-SHA-256, 32 bytes. */
export function keyedEtag(key: EtagKey, etag: string): string {
  return `"${createHmac("sha256", key).update(etag).digest("base64url")}"`;
}

/**
 * The ETag of the same contents written in another way: a strong one may not stand for two different rows of bytes.
 *
 * @example
 * encodedEtag('"a"', "br"); // => '"a-br"'
 * encodedEtag('"a"', null); // => '"a"'
 */
export function encodedEtag(etag: string, encoding: Encoding): string {
  return encoding === null ? etag : `${etag.slice(0, -1)}-${encoding}"`;
}

/**
 * Which ETag of these contents an If-None-Match header names, in whatever encoding its caller has them; null when it
 * names none. A star names none: it says that the caller has some version, and a 304 would show that caller the ETag of
 * contents that were never paid for.
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
 * Whether an If-None-Match header names this ETag, so that the caller has the answer already.
 *
 * Our own comparison, since Express' gives 200 to whoever also sends `Cache-Control: no-cache`, as fetch does whenever
 * a program sets If-None-Match itself. Weak, as RFC 9110 wants it for this header.
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
