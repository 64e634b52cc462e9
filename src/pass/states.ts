import type { SharedPart } from "./shared-part.ts";
import type { PassState } from "./state.ts";

/** Tables whose states a process holds: some 60 kB each. */
const MOST_STATES = 12_000;

/**
 * States of tables in memory, those used last; nothing depends on what it still holds, since a state follows from stored
 * rows. A state may be older than what is stored: compare its version with that of the head before it is used.
 */
export class States {
  readonly #states = new Map<number, { state: PassState; part: SharedPart | null }>();
  readonly #most: number;

  constructor(most = MOST_STATES) {
    this.#most = most;
  }

  /** The state that was kept last for a table. */
  get(tableId: number): PassState | undefined {
    return this.#states.get(tableId)?.state;
  }

  /** What a table read last of a response that it shares; null when it is to be read again. */
  partOf(tableId: number): SharedPart | null {
    return this.#states.get(tableId)?.part ?? null;
  }

  /** Keeps the state of a table; only after the rows that it follows from are known to be committed. */
  keep(state: PassState, part: SharedPart | null = null): void {
    const { tableId } = state.table;
    this.#states.delete(tableId);
    this.#states.set(tableId, { state, part });
    if (this.#states.size <= this.#most) return;
    const [oldest] = this.#states.keys();
    if (oldest !== undefined) this.#states.delete(oldest);
  }

  /** Forgets tables whose newest rows are not known. */
  drop(tableIds: Iterable<number>): void {
    for (const tableId of tableIds) this.#states.delete(tableId);
  }
}
