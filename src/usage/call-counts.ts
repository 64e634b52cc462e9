/** Calls of one kind within one minute: with one key, to one endpoint, with one outcome. */
export interface CallMinute {
  accountId: bigint;
  keyId: bigint;
  endpoint: string;
  /** `ok`, `not_modified`, or the code of the error that was returned. */
  outcome: string;
  /** The start of the minute, in milliseconds since 1970. */
  minuteMs: number;
  n: number;
  /** When the last of them ended, in milliseconds since 1970. */
  lastAtMs: number;
}

/** Whose call it was, where it went and how it ended. */
export type EndedCall = Pick<CallMinute, "accountId" | "keyId" | "endpoint" | "outcome">;

const MINUTE_MS = 60_000;
/** Kinds that wait to be stored, of all accounts: some 4 MB. */
const MOST_WAITING = 20_000;
/** Kinds of one account within a minute; ten keys with six endpoints and an error or two each are fewer. */
const MOST_OF_AN_ACCOUNT = 100;

/**
 * Counts calls by account, key, endpoint, outcome and minute in memory, until they are taken to be stored. Bounded: kinds
 * beyond {@link MOST_OF_AN_ACCOUNT} in a minute, or {@link MOST_WAITING} in all, are not counted.
 */
export class CallCounts {
  #waiting = new Map<string, CallMinute>();
  #minuteMs = 0;
  /** Kinds of the current minute by account, stored ones included. */
  #kinds = new Map<bigint, Set<string>>();

  /** Counts a call that ended at `nowMs`. */
  note(call: EndedCall, nowMs: number): void {
    const minuteMs = nowMs - (nowMs % MINUTE_MS);
    if (minuteMs !== this.#minuteMs) {
      this.#minuteMs = minuteMs;
      this.#kinds.clear();
    }
    const kind = `${call.keyId} ${call.endpoint} ${call.outcome}`;
    const waiting = this.#waiting.get(`${kind} ${minuteMs}`);
    if (waiting !== undefined) {
      waiting.n += 1;
      waiting.lastAtMs = nowMs;
      return;
    }
    const kinds = this.#kinds.get(call.accountId) ?? new Set();
    if (kinds.size >= MOST_OF_AN_ACCOUNT && !kinds.has(kind)) return;
    this.#kinds.set(call.accountId, kinds.add(kind));
    this.#add(`${kind} ${minuteMs}`, { ...call, minuteMs, n: 1, lastAtMs: nowMs });
  }

  /** Takes what is counted, to store it. */
  take(): CallMinute[] {
    const taken = [...this.#waiting.values()];
    this.#waiting.clear();
    return taken;
  }

  /** Takes back what could not be stored. */
  putBack(minutes: readonly CallMinute[]): void {
    for (const one of minutes) {
      const id = `${one.keyId} ${one.endpoint} ${one.outcome} ${one.minuteMs}`;
      const waiting = this.#waiting.get(id);
      if (waiting === undefined) this.#add(id, one);
      else waiting.n += one.n;
    }
  }

  #add(id: string, one: CallMinute): void {
    if (this.#waiting.size < MOST_WAITING) this.#waiting.set(id, one);
  }
}
