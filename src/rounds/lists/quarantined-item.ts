import { hash } from "node:crypto";

/** Characters of a raw item that are stored; the payload itself is stored whole. */
const LONGEST_ITEM = 16_384;

/** A raw item as quarantine stores it: its JSON, cut at the limit, and the SHA-256 of the whole. */
export class QuarantinedItem {
  readonly item: string;
  /** Of the whole item if it is cut; else null. */
  readonly cutSha256: string | null;

  constructor(item: string, cutSha256: string | null) {
    this.item = item;
    this.cutSha256 = cutSha256;
  }

  /** Computed when it is needed: nearly all items are rounds, and each hash takes 0.3 µs. */
  get itemSha256(): string {
    return this.cutSha256 ?? hash("sha256", this.item);
  }
}

/** Returns a raw item as quarantine stores it; an item that has this form already is returned unchanged. */
export function quarantinedItem(raw: unknown): QuarantinedItem {
  if (raw instanceof QuarantinedItem) return raw;
  const item = JSON.stringify(raw) ?? "null";
  if (item.length <= LONGEST_ITEM && item.isWellFormed()) return new QuarantinedItem(item, null);
  return new QuarantinedItem(item.slice(0, LONGEST_ITEM).toWellFormed(), hash("sha256", item));
}
