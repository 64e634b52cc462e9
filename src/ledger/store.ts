import type { Queryable, Transaction } from "../db/client.ts";
import { violatedConstraint } from "../db/errors.ts";
import { usd } from "../money.ts";
import { assertPosting, requestHash, sideName, type LedgerSide, type Posting } from "./posting.ts";

export type { Posting } from "./posting.ts";

/** The outcome of a posting. If it is refused, nothing was written and the caller's transaction continues. */
export type Posted =
  | { ok: true; transactionId: bigint; isReplay: boolean }
  | { ok: false; reason: "overdraft" | "other-request"; message: string };

/**
 * Moves money inside the caller's transaction. Idempotent: a repeated request returns the first transaction and moves
 * nothing; another request with the same key is refused. An overdraft is refused (only cash may be negative).
 *
 * Accounts are locked in the order of their ids, so that postings cannot deadlock, and before the transaction gets its id,
 * so that the balances of an account follow the order of its transaction ids.
 * @throws Error if the posting is invalid (see {@link assertPosting}); RangeError beyond bigint.
 */
export async function post(tx: Transaction, posting: Posting): Promise<Posted> {
  assertPosting(posting);
  const known = await findKnown(tx, posting);
  if (known !== null) return known;
  let held: readonly HeldAccount[] = [];
  try {
    return await tx.savepoint(async (inner) => {
      await makeWallets(inner, posting);
      held = await lockAccounts(inner, posting);
      const transactionId = await saveTransaction(inner, posting);
      if (transactionId === null) {
        // a concurrent transaction with this key has committed
        const other = await findKnown(inner, posting);
        if (other === null) throw new Error(`the ledger has the key ${posting.key} and does not show it`);
        return other;
      }
      await move(inner, transactionId, posting, held);
      return { ok: true, transactionId, isReplay: false };
    });
  } catch (error) {
    if (!isOverdraft(error)) throw error;
    return { ok: false, reason: "overdraft", message: overdraftMessage(posting, held) };
  }
}

/** Balance of an account's wallet in micro-units; 0 if it has no wallet. */
export async function walletMicros(sql: Queryable, accountId: bigint): Promise<bigint> {
  const [wallet] = await sql<{ balance: bigint }[]>`
    select balance
    from ledger_accounts
    where kind = 'wallet'
      and owner_id = ${accountId}`;
  return wallet?.balance ?? 0n;
}

/** A locked account with the index of its leg. */
interface HeldAccount {
  id: bigint;
  balance: bigint;
  place: number;
}

async function findKnown(tx: Transaction, posting: Posting): Promise<Posted | null> {
  const [known] = await tx<{ id: bigint; isSame: boolean; kind: string }[]>`
    select id, request_hash = ${requestHash(posting)} as "isSame", kind
    from ledger_transactions
    where idempotency_key = ${posting.key}`;
  if (known === undefined) return null;
  if (known.isSame) return { ok: true, transactionId: known.id, isReplay: true };
  return {
    ok: false,
    reason: "other-request",
    message: `the key ${posting.key} belongs to transaction ${known.id} (${known.kind}), which was asked for with other values; use a new key for another request`,
  };
}

async function makeWallets(tx: Transaction, { legs }: Posting): Promise<void> {
  const owners = legs.flatMap(({ side }) => (side.kind === "wallet" ? [String(side.owner)] : []));
  if (owners.length === 0) return;
  await tx`
    insert into ledger_accounts (kind, owner_id)
    select 'wallet', owner
    from unnest(${owners}::bigint[]) as t (owner)
    where not exists (
      select 1
      from ledger_accounts a
      where a.kind = 'wallet'
        and a.owner_id = owner
    )
    order by owner
    on conflict do nothing`;
}

async function lockAccounts(tx: Transaction, { legs }: Posting): Promise<HeldAccount[]> {
  const held = await tx<HeldAccount[]>`
    select a.id, a.balance, leg.place::integer - 1 as place
    from unnest(
      ${legs.map(({ side }) => side.kind)}::text[],
      ${legs.map(({ side }) => ownerOf(side))}::bigint[]
    ) with ordinality as leg (kind, owner, place)
    join ledger_accounts a
      on a.kind = leg.kind
      and a.owner_id is not distinct from leg.owner
    order by a.id
    for update of a`;
  if (held.length !== legs.length) {
    throw new Error(
      `the ledger has ${held.length} of the ${legs.length} accounts that ${legs.map(({ side }) => sideName(side)).join(", ")} are`,
    );
  }
  return held;
}

/** The id of the new transaction; null if the key is in use. */
async function saveTransaction(tx: Transaction, posting: Posting): Promise<bigint | null> {
  const { kind, key, meta = {}, reverses } = posting;
  const [saved] = await tx<{ id: bigint }[]>`
    insert into ledger_transactions (kind, idempotency_key, request_hash, meta, reverses)
    values (${kind}, ${key}, ${requestHash(posting)}, ${tx.json(meta)}, ${reverses ?? null})
    on conflict (idempotency_key) do nothing
    returning id`;
  return saved?.id ?? null;
}

async function move(
  tx: Transaction,
  transactionId: bigint,
  posting: Posting,
  held: readonly HeldAccount[],
): Promise<void> {
  const { legs } = posting;
  const accountAt = new Map(held.map(({ place, id }) => [place, String(id)]));
  await tx`
    with legs as materialized (
      select seq, account_id, amount
      from unnest(
        ${legs.map((_, place) => accountAt.get(place) ?? null)}::bigint[],
        ${legs.map(({ micros }) => String(micros))}::bigint[]
      ) with ordinality as leg (account_id, amount, seq)
    ),
    moved as (
      update ledger_accounts a
      set balance = a.balance + legs.amount
      from legs
      where a.id = legs.account_id
      returning a.id, a.balance
    )
    insert into ledger_entries (transaction_id, seq, account_id, amount, balance_after)
    select ${transactionId}, legs.seq, legs.account_id, legs.amount, moved.balance
    from legs
    join moved on moved.id = legs.account_id`;
}

function ownerOf(side: LedgerSide): string | null {
  return side.kind === "wallet" ? String(side.owner) : null;
}

function isOverdraft(error: unknown): boolean {
  return violatedConstraint(error) === "there_is_no_overdraft";
}

function overdraftMessage({ legs }: Posting, held: readonly HeldAccount[]): string {
  const short = held.flatMap(({ place, balance }) => {
    const leg = legs[place];
    return leg === undefined || leg.side.kind.startsWith("cash_") || balance + leg.micros >= 0n
      ? []
      : [`${sideName(leg.side)} holds ${usd(balance)} USD, and ${usd(-leg.micros)} USD were to be taken from it`];
  });
  return `${short.join("; ")}: nothing was moved`;
}
