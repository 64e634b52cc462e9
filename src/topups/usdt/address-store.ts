import { lockAccount } from "../../callers/lock-store.ts";
import type { Queryable, Sql, Transaction } from "../../db/client.ts";

/** The lock while an address is assigned to an account, held until the transaction ends: "rh", 28. */
const LOCK = 0x7268_001c;

/** The address of an account, and how it was derived. */
export interface DepositAddress {
  accountId: bigint;
  index: number;
  address: `0x${string}`;
  xpubFingerprint: string;
  createdAt: Date;
}

/** Returns the address of an account; null before the first request for it. */
export async function findAddress(sql: Queryable, accountId: bigint): Promise<DepositAddress | null> {
  const [found] = await sql<DepositAddress[]>`
    select ${columns(sql)}
    from deposit_addresses
    where account_id = ${accountId}`;
  return found ?? null;
}

/**
 * Assigns the next address to an account, or returns the one that it has; null if the account is closed. `derive` makes
 * the address of an index.
 * Indexes have no gaps but those of a restore, since wallets stop searching for money after a large one.
 */
export async function giveAddress(
  sql: Sql,
  accountId: bigint,
  { xpubFingerprint, derive }: { xpubFingerprint: string; derive: (index: number) => string },
): Promise<DepositAddress | null> {
  return sql.begin(async (tx) => {
    if (!(await lockAccount(tx, accountId))) return null;
    await tx`select pg_advisory_xact_lock(${LOCK})`;
    const known = await findAddress(tx, accountId);
    if (known !== null) return known;
    const index = await nextIndex(tx);
    const [saved] = await tx<DepositAddress[]>`
      insert into deposit_addresses (account_id, address_index, address, xpub_fingerprint)
      values (${accountId}, ${index}, ${derive(index)}, ${xpubFingerprint})
      returning ${columns(tx)}`;
    if (saved === undefined) throw new Error(`account ${accountId} got no address`);
    return saved;
  });
}

/** Returns the fingerprints of the keys that addresses were derived from: one, unless the key was changed. */
export async function listFingerprints(sql: Queryable): Promise<string[]> {
  const rows = await sql<{ fingerprint: string }[]>`
    select distinct xpub_fingerprint as fingerprint
    from deposit_addresses
    order by 1
    limit 10`;
  return rows.map(({ fingerprint }) => fingerprint);
}

async function nextIndex(tx: Transaction): Promise<number> {
  const [row] = await tx<{ next: number }[]>`
    select greatest(
      (select coalesce(max(address_index) + 1, 0) from deposit_addresses),
      (select max(next_address_index) from restores)
    ) as next`;
  return row?.next ?? 0;
}

function columns(sql: Queryable) {
  return sql`
    account_id as "accountId",
    address_index as index,
    address,
    xpub_fingerprint as "xpubFingerprint",
    created_at as "createdAt"`;
}
