import { hash } from "node:crypto";

/** A strong ETag for whatever these texts stand for together; the same texts give the same one in every process. */
export function etagOf(texts: readonly string[]): string {
  return `"${hash("sha1", texts.join("\n"), "base64url")}"`;
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
  return ifNoneMatch.match(/"[^"]*"/g)?.includes(etag) === true;
}
