import { hash } from "node:crypto";

/** Characters of a raw item that are stored; the payload itself is stored whole. */
const LONGEST_ITEM = 16_384;

/** A raw item as quarantine stores it: its JSON, cut at the limit, and the SHA-256 of the whole. */
export class QuarantinedItem {
  readonly item: string;
  readonly itemSha256: string;

  constructor({ item, itemSha256 }: { item: string; itemSha256: string }) {
    this.item = item;
    this.itemSha256 = itemSha256;
  }
}

/** Returns a raw item as quarantine stores it; an item that has this form already is returned unchanged. */
export function quarantinedItem(raw: unknown): QuarantinedItem {
  if (raw instanceof QuarantinedItem) return raw;
  const item = JSON.stringify(raw) ?? "null";
  return new QuarantinedItem({
    item: item.slice(0, LONGEST_ITEM).toWellFormed(),
    itemSha256: hash("sha256", item),
  });
}
