import type { Sql } from "../../db/client.ts";
import { findAddress, giveAddress, listFingerprints } from "./address-store.ts";
import { isWatched } from "./endpoint-store.ts";
import type { Usdt } from "../../config/usdt.ts";
import { xpubFingerprint } from "../../config/xpub.ts";

/**
 * The address of an account, or why none is shown: `not-watched` until every endpoint was read once, since what came before
 * would be missed; `other-key` where addresses were made of another key than the one that is set now.
 */
export type AddressFound =
  { ok: true; address: `0x${string}`; index: number } | { ok: false; reason: "not-watched" | "other-key" };

/**
 * The one address of an account, for good. It is derived and kept when it is first asked for, and derived again and compared
 * each time: where the key was changed, or the row was, no address is shown rather than a wrong one.
 */
export async function addressOf(sql: Sql, usdt: Usdt, accountId: bigint): Promise<AddressFound> {
  if (!(await isWatched(sql, usdt))) return { ok: false, reason: "not-watched" };
  const fingerprint = xpubFingerprint(usdt.xpub);
  const others = (await listFingerprints(sql)).filter((one) => one !== fingerprint);
  if (others.length > 0) return { ok: false, reason: "other-key" };
  // loaded where it is needed alone, since it takes a tenth of a second
  const { addressAt } = await import("./derive.ts");
  const derive = (index: number) => addressAt(usdt.xpub, index);
  const kept =
    (await findAddress(sql, accountId)) ??
    (await giveAddress(sql, accountId, { xpubFingerprint: fingerprint, derive }));
  if (kept.xpubFingerprint !== fingerprint || kept.address !== derive(kept.index))
    return { ok: false, reason: "other-key" };
  return { ok: true, address: kept.address, index: kept.index };
}
