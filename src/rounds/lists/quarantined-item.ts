import { hash } from "node:crypto";

/** Characters of a raw item that are kept; the payload itself is kept whole. */
const LONGEST_ITEM = 16_384;

/** A raw item as quarantine stores it: its JSON, cut where it is too long, and the SHA-256 of all of it. */
export function quarantinedItem(raw: unknown): { item: string; itemSha256: string } {
  const item = JSON.stringify(raw) ?? "null";
  return { item: item.slice(0, LONGEST_ITEM).toWellFormed(), itemSha256: hash("sha256", item) };
}
