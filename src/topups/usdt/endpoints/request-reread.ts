import type { Transaction } from "../../../db/client.ts";
import type { Usdt } from "../../../config/usdt.ts";
import { lockReread, saveReread } from "./endpoint-store.ts";
import { lowestReread, REREAD_DAYS } from "./ranges.ts";

/**
 * Makes the endpoints read blocks again from a block, or returns why not. A later request replaces an earlier one, also
 * by a higher block.
 */
export async function requestReread(
  tx: Transaction,
  usdt: Usdt,
  block: bigint,
): Promise<{ ok: true; endpoints: number } | { ok: false; problem: string }> {
  const reread = await lockReread(tx, usdt);
  if (reread === null) return { ok: false, problem: "no block has been read yet; wait for the first poll" };
  if (block > reread.read) {
    const problem = `expected a block up to ${reread.read}, got ${block}, which has not been read yet; wait until it is`;
    return { ok: false, problem };
  }
  const lowest = lowestReread(reread.existing, usdt.chain.blockMs);
  if (block < lowest) {
    const problem = `expected a block from ${lowest} on (${REREAD_DAYS} days back), got ${block}; enter an older deposit at /ops/bank`;
    return { ok: false, problem };
  }
  return { ok: true, endpoints: await saveReread(tx, usdt, block) };
}
