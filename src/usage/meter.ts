import type { Call, Verdict } from "./store.ts";

interface Waiting {
  call: Call;
  resolve: (verdict: Verdict) => void;
  reject: (error: unknown) => void;
}

/** The most calls in one statement; the rest go in the next, so that one slow batch stays bounded. */
const CALLS_PER_BATCH = 1000;
/** More calls than this waiting for the database are refused at once: the answer would come too late anyway. */
const CALLS_WAITING = 20_000;

/**
 * Counts calls exactly, by group commit: calls that arrive while a statement is in flight go together in the next.
 *
 * One statement at a time leaves the process, so an account's calls are admitted in the order in which they came, and
 * the busier the process is the larger its batches get.
 */
export class Meter {
  readonly #send: (calls: readonly Call[]) => Promise<Verdict[]>;
  #waiting: Waiting[] = [];
  #inFlight = false;

  /** @param send has a batch counted, all or nothing, and gives a verdict for each call; when to give up is its affair */
  constructor(send: (calls: readonly Call[]) => Promise<Verdict[]>) {
    this.#send = send;
  }

  /**
   * Meters one call. Resolves once the count is durable, or once the call is refused. Rejects where a batch fails: for
   * the calls in it, and for those that wait behind it, which would only learn the same later. Then nothing may be
   * answered.
   */
  consume(call: Call): Promise<Verdict> {
    if (this.#waiting.length >= CALLS_WAITING) {
      return Promise.reject(
        new Error(`expected at most ${CALLS_WAITING} calls to wait for the meter; try again shortly`),
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ call, resolve, reject });
      if (!this.#inFlight) void this.#flush();
    });
  }

  async #flush(): Promise<void> {
    this.#inFlight = true;
    // one turn of the event loop: calls that were read from their sockets together share a statement
    await new Promise((next) => setImmediate(next));
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, CALLS_PER_BATCH);
      try {
        const verdicts = await this.#send(batch.map(({ call }) => call));
        batch.forEach(({ resolve, reject }, index) => {
          const verdict = verdicts[index];
          if (verdict === undefined) reject(new Error("expected a verdict for every call of a batch, got fewer"));
          else resolve(verdict);
        });
      } catch (error) {
        for (const { reject } of [...batch, ...this.#waiting.splice(0)]) reject(error);
      }
    }
    this.#inFlight = false;
  }
}
