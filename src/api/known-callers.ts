import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Caller } from "../callers/caller-store.ts";
import { hashKey } from "../callers/key.ts";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { ApiError } from "../http/errors.ts";
import { within } from "../http/within.ts";

/** How long a caller is believed to be what the database said, where nothing was announced. */
const BELIEVED_MS = 5_000;
/** How long a known caller goes on being served while the database does not answer. */
const BELIEVED_IN_TROUBLE_MS = 600_000;
/** What a caller waits for the database before being told to come back; counting the call may take as long again. */
const PATIENCE_MS = 300;
const RETRY_MS = 1_000;
const RETRY_AFTER_SECONDS = 5;
/** About 10 MB. */
const MOST_KNOWN = 10_000;
/** More questions than this without an answer are not asked: whoever sends invented keys must not fill our memory. */
const MOST_UNANSWERED = 500;

/** Who is behind a key, mostly from memory. */
export interface KnownCallers {
  /**
   * Null where the key was never made: that is not remembered, so that a new key works with the next request.
   * @param connection where it came from: what is found is then known of it at once
   * @param beforeLookup is called before the database is asked about a key that is not known here; what it throws is thrown
   * @throws ApiError `temporarily_unavailable` where only the database could tell and it does not answer.
   */
  of(key: string, beforeLookup?: () => Promise<void>, connection?: Socket): Promise<Caller | null>;
  /**
   * The caller of a request, where its connection has just sent the same key: without hashing it again, and without
   * keeping the text of a key longer than the connection that brought it. Null says nothing: ask `of`.
   */
  known(request: IncomingMessage): Caller | null;
  /** Something about callers changed: asks the database again for each. */
  doubt(): void;
}

interface Known {
  sha256: Buffer;
  caller: Caller;
  toldAt: number;
  /** When the database is to be asked again. */
  askAt: number;
}

/** Remembers callers for five seconds, the most recently seen 10,000; `find` asks the database by the SHA-256 of a key. */
export function knowCallers(find: (sha256: Buffer) => Promise<Caller | null>, log: Log): KnownCallers {
  const known = new Map<string, Known>(); // least recently seen first
  const asking = new Map<string, Promise<Caller | null>>();
  // what a connection sends is compared with what it sent itself, so how long that takes tells nobody anything
  const sentBefore = new WeakMap<Socket, { key: string; found: Known; doubts: number }>();
  let doubts = 0;
  let unanswered = 0;
  let isFailing = false;

  async function findOne(sha256: Buffer): Promise<Caller | null> {
    if (unanswered >= MOST_UNANSWERED) throw new Error(`${unanswered} questions are still without an answer`);
    unanswered++;
    try {
      return await find(sha256);
    } finally {
      unanswered--;
    }
  }

  async function ask(id: string, sha256: Buffer): Promise<Caller | null> {
    const doubtsBefore = doubts;
    try {
      const caller = await within(PATIENCE_MS, "PostgreSQL", findOne(sha256));
      if (isFailing) log.info("callers can be looked up again");
      isFailing = false;
      known.delete(id);
      if (caller === null) return null;
      const now = performance.now();
      // an answer from before a change may not say what holds after it
      // and whoever is refused may have bought a plan in another process: nobody waits for the word of it to arrive
      const isBelieved = doubts === doubtsBefore && caller.standing === "good";
      // nobody is told when a plan or a key ends, so it is believed no longer than that
      const believedMs = Math.min(BELIEVED_MS, caller.endsInMs ?? BELIEVED_MS);
      known.set(id, { sha256, caller, toldAt: now, askAt: isBelieved ? now + believedMs : now });
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
        if (beforeLookup !== undefined) await beforeLookup();
      } else {
        if (!timingSafeEqual(found.sha256, sha256)) throw new Error("expected to know a key by its own SHA-256");
        known.delete(id);
        known.set(id, found);
        if (now < found.askAt) {
          if (connection !== undefined) sentBefore.set(connection, { key, found, doubts });
          return found.caller;
        }
      }
      let answer = asking.get(id);
      if (answer === undefined) {
        answer = ask(id, sha256);
        asking.set(id, answer);
      }
      const isKnown = found !== undefined && now - found.toldAt < BELIEVED_IN_TROUBLE_MS;
      if (isKnown && isFailing) {
        answer.catch(() => undefined); // it was logged; nobody need wait for another failure
        return found.caller;
      }
      try {
        return await answer;
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
