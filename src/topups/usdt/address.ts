import type { Sql } from "../../db/client.ts";
import { findAddress, giveAddress, listFingerprints } from "./address-store.ts";
import { isWatched } from "./endpoints/endpoint-store.ts";
import type { Usdt } from "../../config/usdt.ts";
import { xpubFingerprint } from "../../config/xpub.ts";

/**
 * The address of an account, or why none is shown. `not-watched`: not every endpoint was read once, and earlier
 * payments would be missed. `other-key`: addresses were derived from another key than the configured one. `closed`: the
 * account was closed before it had an address.
 */
export type AddressFound =
  { ok: true; address: `0x${string}`; index: number } | { ok: false; reason: "not-watched" | "other-key" | "closed" };

/**
 * Returns the permanent address of an account. It is derived and stored at the first request, and derived again and
 * compared at each later one: if the key or the row was changed, no address is shown rather than a wrong one.
 */
export async function addressOf(sql: Sql, usdt: Usdt, accountId: bigint): Promise<AddressFound> {
  if (!(await isWatched(sql, usdt))) return { ok: false, reason: "not-watched" };
  const fingerprint = xpubFingerprint(usdt.xpub);
  const others = (await listFingerprints(sql)).filter((one) => one !== fingerprint);
  if (others.length > 0) return { ok: false, reason: "other-key" };
  // loaded lazily, since it takes 100 ms
  const { addressAt } = await import("./derive.ts");
  const derive = (index: number) => addressAt(usdt.xpub, index);
  const kept =
    (await findAddress(sql, accountId)) ??
    (await giveAddress(sql, accountId, { xpubFingerprint: fingerprint, derive }));
  if (kept === null) return { ok: false, reason: "closed" };
  if (kept.xpubFingerprint !== fingerprint || kept.address !== derive(kept.index))
    return { ok: false, reason: "other-key" };
  return { ok: true, address: kept.address, index: kept.index };
}
