import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Caller } from "../callers/caller-store.ts";
import { hashKey } from "../callers/key.ts";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { ApiError } from "../http/errors.ts";
import { within } from "../within.ts";
import { TIMES, type ApiTimes } from "./times.ts";

/** How long a cached caller is served while the database is down. */
const CACHED_WHEN_DOWN_MS = 600_000;
const RETRY_MS = 1_000;
const RETRY_AFTER_SECONDS = 5;
/** About 10 MB. */
const MOST_KNOWN = 10_000;
/** The limit of pending lookups: invented keys must not fill the memory. */
const MOST_PENDING = 500;

/** Finds the caller of a key, mostly from memory. */
export interface KnownCallers {
  /**
   * Returns the caller of a key; null if it was never issued. Null is not cached, so that a new key works with its
   * first request.
   * @param connection the client's connection, for {@link KnownCallers.known}
   * @param beforeLookup is called before the database is queried for a key that is not cached, or for a caller who was
   * refused; what it throws is thrown
   * @throws ApiError `temporarily_unavailable` if the key is not cached and the database does not respond.
   */
  of(
    key: string,
    beforeLookup?: (refused: Caller | null) => Promise<void>,
    connection?: Socket,
  ): Promise<Caller | null>;
  /**
   * Returns the caller if the connection's previous request had the same key. The key is not hashed again, and its text
   * is kept no longer than the connection. Null means unknown: call `of`.
   */
  known(request: IncomingMessage): Caller | null;
  /** Invalidates the cache: each caller is queried again. */
  doubt(): void;
}

interface Known {
  sha256: Buffer;
  caller: Caller;
  announcedAt: number;
  /** When the cached caller expires. */
  askAt: number;
}

/**
 * Caches callers for five seconds, the most recently used 10,000; `find` queries the database by the SHA-256 of a key.
 */
export function knowCallers(
  find: (sha256: Buffer) => Promise<Caller | null>,
  log: Log,
  { lookupMs, cachedMs }: Pick<ApiTimes, "lookupMs" | "cachedMs"> = TIMES,
): KnownCallers {
  const known = new Map<string, Known>(); // least recently seen first
  const asking = new Map<string, Promise<Caller | null>>();
  // a connection's key is compared only with its own previous one, so the timing reveals nothing
  const sentBefore = new WeakMap<Socket, { key: string; found: Known; doubts: number }>();
  let doubts = 0;
  let pending = 0;
  let isFailing = false;

  async function findOne(sha256: Buffer): Promise<Caller | null> {
    if (pending >= MOST_PENDING) throw new Error(`${pending} lookups are still pending`);
    pending++;
    try {
      return await find(sha256);
    } finally {
      pending--;
    }
  }

  async function ask(id: string, sha256: Buffer): Promise<Caller | null> {
    const doubtsBefore = doubts;
    try {
      const caller = await within(lookupMs, "PostgreSQL", findOne(sha256));
      if (isFailing) log.info("callers can be looked up again");
      isFailing = false;
      known.delete(id);
      if (caller === null) return null;
      const now = performance.now();
      // a lookup from before a change may be outdated, and a refused caller may have bought a plan in another process:
      // neither is cached until the notification arrives
      const isCacheable = doubts === doubtsBefore && caller.standing === "good";
      // the end of a plan or key sends no notification, so the cache entry ends with it
      const validMs = Math.min(cachedMs, caller.endsInMs ?? cachedMs);
      known.set(id, { sha256, caller, announcedAt: now, askAt: isCacheable ? now + validMs : now });
      if (known.size > MOST_KNOWN) for (const oldest of known.keys().take(1)) known.delete(oldest);
      return caller;
    } catch (error) {
      if (!isFailing) log.warn(`callers cannot be looked up, so only known ones are served: ${reasonOf(error)}`);
      isFailing = true;
      const before = known.get(id);
      if (before !== undefined) before.askAt = performance.now() + RETRY_MS;
      throw error;
    } finally {
      asking.delete(id);
    }
  }

  return {
    known({ headers, socket }) {
      const before = sentBefore.get(socket);
      if (before === undefined || before.key !== headers["x-api-key"] || before.doubts !== doubts) return null;
      return performance.now() < before.found.askAt ? before.found.caller : null;
    },
    async of(key, beforeLookup, connection) {
      const sha256 = hashKey(key);
      const id = sha256.toString("latin1");
      const found = known.get(id);
      const now = performance.now();
      if (found === undefined) {
        if (beforeLookup !== undefined) await beforeLookup(null);
      } else {
        if (!timingSafeEqual(found.sha256, sha256)) throw new Error("expected to know a key by its own SHA-256");
        known.delete(id);
        known.set(id, found);
        if (now < found.askAt) {
          if (connection !== undefined) sentBefore.set(connection, { key, found, doubts });
          return found.caller;
        }
        if (beforeLookup !== undefined && found.caller.standing !== "good") await beforeLookup(found.caller);
      }
      let lookup = asking.get(id);
      if (lookup === undefined) {
        lookup = ask(id, sha256);
        asking.set(id, lookup);
      }
      const isKnown = found !== undefined && now - found.announcedAt < CACHED_WHEN_DOWN_MS;
      if (isKnown && isFailing) {
        lookup.catch(() => undefined); // already logged; the failure needs no second handler
        return found.caller;
      }
      try {
        return await lookup;
      } catch (cause) {
        if (isKnown) return found.caller;
        throw new ApiError("temporarily_unavailable", { cause, headers: { "Retry-After": `${RETRY_AFTER_SECONDS}` } });
      }
    },
    doubt() {
      doubts++;
      for (const one of known.values()) one.askAt = 0;
    },
  };
}
