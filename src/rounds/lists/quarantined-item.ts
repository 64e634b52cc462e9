import { hash } from "node:crypto";

/** Characters of a raw item that are kept; the payload itself is kept whole. */
const LONGEST_ITEM = 16_384;

/** A raw item as quarantine stores it: its JSON, cut where it is too long, and the SHA-256 of all of it. */
export class QuarantinedItem {
  readonly item: string;
  readonly itemSha256: string;

  constructor({ item, itemSha256 }: { item: string; itemSha256: string }) {
    this.item = item;
    this.itemSha256 = itemSha256;
  }
}

/** A raw item as quarantine stores it; as it is when it was made one before. */
export function quarantinedItem(raw: unknown): QuarantinedItem {
  if (raw instanceof QuarantinedItem) return raw;
  const item = JSON.stringify(raw) ?? "null";
  return new QuarantinedItem({
    item: item.slice(0, LONGEST_ITEM).toWellFormed(),
    itemSha256: hash("sha256", item),
  });
}
