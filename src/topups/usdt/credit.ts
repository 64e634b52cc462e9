import type { Sql, Transaction } from "../../db/client.ts";
import { creditTopup, saveTopup } from "../topup-store.ts";
import {
  listSmallAccounts,
  lockPending,
  lockSmall,
  type PendingDeposit,
  saveBelowMin,
  saveCredited,
} from "./pending-store.ts";
import type { Usdt } from "../../config/usdt.ts";

/** A deposit's identity in the ledger: its transaction and its position in that, never its block. */
type Identity = Pick<PendingDeposit, "txHash" | "position">;

/**
 * Settles a deposit that every endpoint confirms and that is deep enough: credits it, or keeps it if it is too small.
 * All in one transaction, which is refused if the deposit changed since it was checked; repeated or concurrent calls
 * settle it once.
 */
export async function takeDeposit(
  sql: Sql,
  usdt: Usdt,
  deposit: PendingDeposit,
): Promise<"credited" | "below_min" | "changed"> {
  return sql.begin(async (tx) => {
    if ((await lockPending(tx, deposit)) === null) return "changed";
    if (deposit.micros < usdt.minMicros) {
      await saveBelowMin(tx, deposit.id);
      return "below_min";
    }
    const { id, accountId, micros } = deposit;
    await credit(tx, usdt, { ids: [id], last: deposit, accountId, micros });
    return "credited";
  });
}

/**
 * Credits small deposits of accounts whose total reaches the minimum: one top-up per account, keyed by its last
 * deposit. Returns how many deposits were credited.
 */
export async function takeSmallDeposits(sql: Sql, usdt: Usdt): Promise<number> {
  let credited = 0;
  for (const accountId of await listSmallAccounts(sql, usdt)) {
    credited += await sql.begin(async (tx) => {
      const small = await lockSmall(tx, usdt, accountId);
      const micros = small.reduce((sum, one) => sum + one.micros, 0n);
      const last = small.at(-1);
      if (last === undefined || micros < usdt.minMicros) return 0;
      await credit(tx, usdt, { ids: small.map(({ id }) => id), last, accountId, micros });
      return small.length;
    });
  }
  return credited;
}

async function credit(
  tx: Transaction,
  { chain }: Usdt,
  given: { ids: readonly bigint[]; last: Identity; accountId: bigint; micros: bigint },
): Promise<void> {
  const { ids, last, accountId, micros } = given;
  const key = `evm:${chain.id}:${last.txHash}:${last.position}`;
  const details = { network: chain.name, transaction: last.txHash, deposits: String(ids.length) };
  const topupId = await saveTopup(tx, {
    accountId,
    method: "usdt",
    reference: key,
    state: "seen",
    amountMicros: micros,
    details,
  });
  if (topupId === null) throw new Error(`the deposit ${key} waits, and there is a top-up of it already`);
  const posted = await creditTopup(tx, { topupId, micros, key, cash: "cash_onchain", meta: { network: chain.name } });
  if (!posted.ok) throw new Error(`the deposit ${key} was not credited: ${posted.message}`);
  await saveCredited(tx, ids, topupId);
}
