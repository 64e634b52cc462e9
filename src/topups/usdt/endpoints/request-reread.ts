import type { Transaction } from "../../../db/client.ts";
import type { Usdt } from "../../../config/usdt.ts";
import { lockReread, saveReread } from "./endpoint-store.ts";
import { lowestReread, REREAD_DAYS } from "./ranges.ts";

/** Makes the endpoints that were read up to a block read it and the later ones again, or returns why not. */
export async function requestReread(
  tx: Transaction,
  usdt: Usdt,
  block: bigint,
): Promise<{ ok: true; endpoints: number } | { ok: false; problem: string }> {
  const reread = await lockReread(tx, usdt);
  if (reread === null) return { ok: false, problem: "no block has been read yet; wait for the first poll" };
  if (block > reread.highest) {
    const problem = `expected a block up to ${reread.highest}, got ${block}, which has not been read yet, or is to be read again; wait until it is read`;
    return { ok: false, problem };
  }
  const lowest = lowestReread(reread.lowest, usdt.chain.blockMs);
  if (block < lowest) {
    const problem = `expected a block from ${lowest} on (${REREAD_DAYS} days back), got ${block}; enter an older deposit at /ops/bank, only if neither it, in any state, nor its block is listed on this page: it would be credited twice`;
    return { ok: false, problem };
  }
  return { ok: true, endpoints: await saveReread(tx, usdt, block) };
}
