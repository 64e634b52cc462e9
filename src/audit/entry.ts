/**
 * The audit log: who did what, when, to what, and why.
 *
 * An entry's hash covers all of its fields and the hash before it, so that none can be slipped in, changed or taken out
 * afterwards without every later one telling.
 */
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";

/** Where someone acted: at `/ops`, at the console, with a command of this program, or this program by itself. */
export type Surface = "ops" | "console" | "cli" | "system";

/** A value as JSON keeps it. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Something that was done. */
export interface AuditEntry {
  surface: Surface;
  /** An e-mail address, a user of the machine, or the part of the program that acted. */
  actor: string;
  /** The role with which it was done; only at `/ops` people have one. */
  role: string | null;
  /** A word of its own, such as `queue.pause`. */
  action: string;
  /** What it was done to, such as `house bustabit`. */
  target: string;
  /** What was so before, and after; null if there was nothing. Never a secret. Times and bigints become texts. */
  before: unknown;
  after: unknown;
  reason: string | null;
  requestId: string | null;
  address: string | null;
}

/** The hashed fields of an entry. */
export interface HashedEntry {
  seq: string;
  /** `2026-11-21T04:00:12.1234560Z` */
  at: string;
  surface: Surface;
  actor: string;
  role: string | null;
  action: string;
  target: string;
  before: Json;
  after: Json;
  reason: string | null;
  request_id: string | null;
  address: string | null;
}

/** What stands before the first entry. */
export const FIRST_AUDIT_HASH = "0".repeat(64);

/** Hash of an entry, hex: sha256(prev_hash + "\n" + JCS(fields)), JCS being RFC 8785. */
export function auditHash(prevHash: string, fields: HashedEntry): string {
  return createHash("sha256")
    .update(`${prevHash}\n${canonicalize(fields)}`, "utf8")
    .digest("hex");
}

/**
 * Any value as PostgreSQL's jsonb keeps it: times and bigints as texts, what JSON has no form for left out.
 *
 * @example
 * toJson({ at: new Date(0), n: 12n, gone: undefined }); // => { at: "1970-01-01T00:00:00.000Z", n: "12" }
 * toJson(undefined); // => null
 */
export function toJson(value: unknown): Json {
  if (value === undefined) return null;
  const text = JSON.stringify(value, (_, item: unknown) => {
    if (typeof item === "bigint") return String(item);
    return typeof item === "string" ? cleanText(item) : item;
  });
  return JSON.parse(text) as Json;
}

/** A text as PostgreSQL can keep it: without zero bytes and halves of characters. */
export function cleanText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\u{FFFD}");
}
