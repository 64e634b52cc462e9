/** The rules of the ledger, each as one statement over all rows: PostgreSQL sorts on disk, so memory is bounded. */
import type { Transaction } from "../db/client.ts";

/** A broken rule: where, and what was expected. */
export interface Found {
  /** `wallet 17`, `transaction 812`. */
  subject: string;
  expected: string;
  found: string;
}

/** The first differences of a rule, and their total number. */
export interface FoundBy {
  rows: Found[];
  total: number;
}

/** Accounts whose balance is not the sum of their entries. */
export async function listOtherBalances(tx: Transaction, limit: number): Promise<FoundBy> {
  return foundBy(
    await tx<FoundRow[]>`
      select
        kind || coalesce(' ' || owner_id, '') as subject,
        coalesce(summed.total, 0)::text as expected,
        balance::text as found,
        count(*) over ()::integer as total
      from ledger_accounts a
      left join (
        select account_id, sum(amount) as total
        from ledger_entries
        group by account_id
      ) summed on summed.account_id = a.id
      where balance <> coalesce(summed.total, 0)
      order by a.id
      limit ${limit}`,
  );
}

/** Transactions with fewer than two entries, or whose entries do not sum to 0. */
export async function listUnbalanced(tx: Transaction, limit: number): Promise<FoundBy> {
  return foundBy(
    await tx<FoundRow[]>`
      select
        'transaction ' || t.id as subject,
        '2 entries or more with the sum 0' as expected,
        coalesce(moved.legs, 0) || ' entries with the sum ' || coalesce(moved.total, 0) as found,
        count(*) over ()::integer as total
      from ledger_transactions t
      left join (
        select transaction_id, count(*) as legs, sum(amount) as total
        from ledger_entries
        group by transaction_id
      ) moved on moved.transaction_id = t.id
      where coalesce(moved.legs, 0) < 2
        or moved.total <> 0
      order by t.id
      limit ${limit}`,
  );
}

/** Entries whose `balance_after` is not the previous one plus their amount, and last entries that differ from the balance. */
export async function listBrokenChains(tx: Transaction, limit: number): Promise<FoundBy> {
  return foundBy(
    await tx<FoundRow[]>`
      with followed as (
        select
          account_id,
          transaction_id,
          balance_after,
          coalesce(lead(balance_after) over newest, 0) + amount as expected,
          row_number() over newest = 1 as is_last
        from ledger_entries
        window newest as (partition by account_id order by transaction_id desc)
      )
      select
        a.kind || coalesce(' ' || a.owner_id, '') || ' after transaction ' || f.transaction_id as subject,
        case when f.balance_after <> f.expected then f.expected else a.balance end::text as expected,
        f.balance_after::text as found,
        count(*) over ()::integer as total
      from followed f
      join ledger_accounts a on a.id = f.account_id
      where f.balance_after <> f.expected
        or (f.is_last and f.balance_after <> a.balance)
      order by f.transaction_id
      limit ${limit}`,
  );
}

/** Accounts below zero, now or after some entry, that are not cash. */
export async function listNegative(tx: Transaction, limit: number): Promise<FoundBy> {
  return foundBy(
    await tx<FoundRow[]>`
      select
        a.kind || coalesce(' ' || a.owner_id, '') as subject,
        '0 or more' as expected,
        least(a.balance, lowest.micros)::text as found,
        count(*) over ()::integer as total
      from ledger_accounts a
      left join (
        select account_id, min(balance_after) as micros
        from ledger_entries
        group by account_id
      ) lowest on lowest.account_id = a.id
      where a.kind not like 'cash\_%'
        and least(a.balance, lowest.micros) < 0
      order by a.id
      limit ${limit}`,
  );
}

/** Transactions with a source or target that their kind does not allow; see src/ledger/posting.ts. */
export async function listWrongWays(tx: Transaction, limit: number): Promise<FoundBy> {
  return foundBy(
    await tx<FoundRow[]>`
      select
        'transaction ' || t.id as subject,
        case t.kind
          when 'topup' then 'from cash to a wallet'
          when 'purchase' then 'from a wallet to revenue'
          when 'suspense' then 'between cash and suspense'
          else 'from suspense to a wallet'
        end as expected,
        e.amount || ' on ' || a.kind as found,
        count(*) over ()::integer as total
      from ledger_transactions t
      join ledger_entries e on e.transaction_id = t.id
      join ledger_accounts a on a.id = e.account_id
      where t.kind <> 'reversal'
        and a.kind not like case
          when t.kind = 'suspense' then case when a.kind = 'suspense' then 'suspense' else 'cash\_%' end
          when t.kind = 'topup' and e.amount < 0 then 'cash\_%'
          when t.kind = 'placement' and e.amount < 0 then 'suspense'
          when t.kind = 'purchase' and e.amount > 0 then 'revenue'
          else 'wallet'
        end
      order by t.id, e.seq
      limit ${limit}`,
  );
}

/** Reversals that do not mirror their transaction exactly. */
export async function listStrangeReversals(tx: Transaction, limit: number): Promise<FoundBy> {
  return foundBy(
    await tx<FoundRow[]>`
      select
        'transaction ' || r.id as subject,
        'the mirror of transaction ' || coalesce(r.reverses::text, '(none)') as expected,
        'other amounts' as found,
        count(*) over ()::integer as total
      from ledger_transactions r
      where r.kind = 'reversal'
        and (
          r.reverses is null
          or exists (
            select 1
            from (select account_id, amount from ledger_entries where transaction_id = r.id) ours
            full join (select account_id, amount from ledger_entries where transaction_id = r.reverses) theirs
              using (account_id)
            where ours.amount is distinct from -theirs.amount
          )
        )
      order by r.id
      limit ${limit}`,
  );
}

type FoundRow = Found & { total: number };

function foundBy(rows: readonly FoundRow[]): FoundBy {
  return {
    rows: rows.map(({ subject, expected, found }) => ({ subject, expected, found })),
    total: rows[0]?.total ?? 0,
  };
}
