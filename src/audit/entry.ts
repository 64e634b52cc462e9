/**
 * The audit log: who did what, when, to what, and why.
 *
 * An entry's hash covers all of its fields and the previous hash, so an inserted, changed or removed entry breaks every
 * later hash.
 */
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";

/** The surface of an action: `/ops`, the console, a command of this program, or the program itself. */
export type Surface = "ops" | "console" | "cli" | "system";

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** An action. */
export interface AuditEntry {
  surface: Surface;
  /** An e-mail address, a user of the machine, or the part of the program that acted. */
  actor: string;
  /** The role of the actor; only users of `/ops` have one. */
  role: string | null;
  /** The name of the action, such as `queue.pause`. */
  action: string;
  /** The target, such as `house bustabit`. */
  target: string;
  /** The state before and after; null if there was none. Never a secret. Times and bigints become texts. */
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

/** The hash before the first entry. */
export const FIRST_AUDIT_HASH = "0".repeat(64);

/** Hash of an entry, hex: sha256(prev_hash + "\n" + JCS(fields)), JCS being RFC 8785. */
export function auditHash(prevHash: string, fields: HashedEntry): string {
  return createHash("sha256")
    .update(`${prevHash}\n${canonicalize(fields)}`, "utf8")
    .digest("hex");
}

/**
 * Any value as PostgreSQL's jsonb: times and bigints as texts; values without a JSON form are left out.
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

/** A text that PostgreSQL can store: without zero bytes and lone surrogates. */
export function cleanText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\u{FFFD}");
}
