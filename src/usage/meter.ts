import type { Call, Verdict } from "./store.ts";

interface Waiting {
  call: Call;
  begunAt: number;
  resolve: (verdict: Verdict) => void;
  reject: (error: unknown) => void;
}

/** How long a call may wait for its batch, by a clock of milliseconds. */
interface Patience {
  ms: number;
  nowMs: () => number;
}

/** The most calls in one statement; the rest go in the next, so that one slow batch stays bounded. */
const CALLS_PER_BATCH = 1000;
/** Above this number of calls that wait for the database, more are refused immediately: their response would be late. */
const CALLS_WAITING = 20_000;
/** Interval of the check for calls that have waited too long behind a batch. */
const LOOK_EVERY_MS = 50;

/**
 * Counts calls exactly, by group commit: calls that arrive while a statement is in flight go together in the next.
 *
 * One statement at a time leaves the process, so an account's calls are admitted in the order in which they came, and
 * the busier the process is the larger its batches get.
 */
export class Meter {
  readonly #send: (calls: readonly Call[], oldestAt: number) => Promise<Verdict[]>;
  readonly #patience: Patience | null;
  #waiting: Waiting[] = [];
  #inFlight = false;

  /**
   * @param send has a batch counted, all or nothing, and gives a verdict for each call; when to give up is its affair,
   * knowing since when the oldest of them is here
   * @param patience a call that is older when its batch begins is refused and never sent
   */
  constructor(
    send: (calls: readonly Call[], oldestAt: number) => Promise<Verdict[]>,
    patience: Patience | null = null,
  ) {
    this.#send = send;
    this.#patience = patience;
  }

  /**
   * Meters one call. Resolves once the count is durable, or once the call is refused. Rejects if its batch fails, or
   * if it has waited too long behind another; the caller must then get no data.
   * @param begunAt since when the call is here, by the clock of the patience
   */
  consume(call: Call, begunAt = 0): Promise<Verdict> {
    if (this.#waiting.length >= CALLS_WAITING) {
      return Promise.reject(
        new Error(`expected at most ${CALLS_WAITING} calls to wait for the meter; try again shortly`),
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ call, begunAt, resolve, reject });
      if (!this.#inFlight) void this.#flush();
    });
  }

  async #flush(): Promise<void> {
    this.#inFlight = true;
    const looking = setInterval(() => this.#refuseOld(), LOOK_EVERY_MS);
    // one tick of the event loop: calls that were read from their sockets together share a statement
    await new Promise((next) => setImmediate(next));
    for (this.#refuseOld(); this.#waiting.length > 0; this.#refuseOld()) {
      const batch = this.#waiting.splice(0, CALLS_PER_BATCH);
      try {
        const verdicts = await this.#send(
          batch.map(({ call }) => call),
          batch.reduce((oldest, { begunAt }) => Math.min(oldest, begunAt), Infinity),
        );
        batch.forEach(({ resolve, reject }, index) => {
          const verdict = verdicts[index];
          if (verdict === undefined) reject(new Error("expected a verdict for every call of a batch, got fewer"));
          else resolve(verdict);
        });
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    clearInterval(looking);
    this.#inFlight = false;
  }

  #refuseOld(): void {
    if (this.#patience === null) return;
    const { ms, nowMs } = this.#patience;
    const youngEnough = nowMs() - ms;
    if (this.#waiting.every(({ begunAt }) => begunAt >= youngEnough)) return;
    const old = this.#waiting.filter(({ begunAt }) => begunAt < youngEnough);
    this.#waiting = this.#waiting.filter(({ begunAt }) => begunAt >= youngEnough);
    for (const { reject } of old) reject(new Error(`a call waited ${ms} ms to be counted`));
  }
}
