import type { PassState } from "./compute/state.ts";

/** Tables whose states a process holds: some 25 kB each. */
const MOST_STATES = 12_000;
/** A state that no poll used for nine to ten minutes is dropped: its table was removed, or another process polls it. */
const IDLE_MS = 600_000;
/** A state that was kept this recently stays at its place in the order: moving it each time took 2 % of a busy worker. */
const ORDERED_WITHIN_MS = 60_000;

/**
 * States of tables in memory, the most recently used, to the minute. Only a cache, because a state follows from stored rows. A state
 * may be older than the stored rows: compare its version with that of the head before use.
 */
export class States {
  readonly #states = new Map<number, { state: PassState; movedAt: number }>();
  readonly #most: number;
  readonly #now: () => number;

  /** @param now milliseconds of a clock that never steps back; for tests */
  constructor(most = MOST_STATES, now = () => performance.now()) {
    this.#most = most;
    this.#now = now;
  }

  /** The newest cached state of a table. */
  get(tableId: number): PassState | undefined {
    return this.#states.get(tableId)?.state;
  }

  /** Caches the state of a table; only after its rows are known to be committed. */
  keep(state: PassState): void {
    const { tableId } = state.table;
    const now = this.#now();
    const kept = this.#states.get(tableId);
    if (kept !== undefined && now - kept.movedAt < ORDERED_WITHIN_MS) {
      kept.state = state;
      return;
    }
    this.#states.delete(tableId);
    this.#states.set(tableId, { state, movedAt: now });
    for (const [oldest, { movedAt }] of this.#states) {
      if (this.#states.size <= this.#most && now - movedAt < IDLE_MS) return;
      this.#states.delete(oldest);
    }
  }

  /** Drops the states of tables whose newest rows are unknown. */
  drop(tableIds: Iterable<number>): void {
    for (const tableId of tableIds) this.#states.delete(tableId);
  }
}
