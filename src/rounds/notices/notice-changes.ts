import type { NoticeChange } from "./notices-store.ts";
import type { NoticeKind } from "./notices.ts";

/**
 * Collects the changes of notices in one batch: the last change of each notice is stored, and each keeps the time it
 * was opened.
 */
export class NoticeChanges {
  readonly #open: ReadonlyMap<number, ReadonlyMap<NoticeKind, string>>;
  readonly #changes = new Map<string, NoticeChange>();

  constructor(open: ReadonlyMap<number, ReadonlyMap<NoticeKind, string>>) {
    this.#open = open;
  }

  /** Opens a notice at `now`, or updates an open one; `sentence` gets the time since which it is open. */
  set(tableId: number, kind: NoticeKind, now: string, sentence: (since: string) => string): void {
    const since = this.#open.get(tableId)?.get(kind) ?? this.#changes.get(`${tableId} ${kind}`)?.since ?? now;
    this.#changes.set(`${tableId} ${kind}`, { tableId, kind, text: sentence(since), since });
  }

  /** Closes a notice; does nothing if none is open. */
  close(tableId: number, kind: NoticeKind): void {
    const isOpen = this.#open.get(tableId)?.has(kind) === true;
    if (isOpen) this.#changes.set(`${tableId} ${kind}`, { tableId, kind, text: null });
    else this.#changes.delete(`${tableId} ${kind}`);
  }

  /** The changes to store. */
  changes(): NoticeChange[] {
    return [...this.#changes.values()];
  }
}
