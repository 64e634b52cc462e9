import type { Sql, Transaction } from "../db/client.ts";
import { countLedger, limitStatements, listRequests, type LedgerCounts } from "./check-store.ts";
import { usd } from "../money.ts";
import { hashOfRequest } from "./posting.ts";
import {
  listBrokenChains,
  listNegative,
  listOtherBalances,
  listStrangeReversals,
  listUnbalanced,
  listWrongWays,
  type Found,
} from "./rules-store.ts";

/** Transactions per batch of recomputed hashes: some hundred kilobytes. */
const BATCH = 2_000;
/** Differences of one kind that are listed; a ledger with more needs its backup, and the rest is counted. */
const MAX_LISTED = 20;

/** A broken rule (`kind`) and where (`subject`); amounts are in micro-units. */
export interface Difference extends Found {
  kind: "balance" | "transaction" | "chain" | "negative" | "way" | "reversal" | "request" | "sum";
}

/** What a check of the whole ledger found. */
export interface LedgerCheck {
  ok: boolean;
  checked: Pick<LedgerCounts, "accounts" | "transactions" | "entries">;
  /** Balances of our own accounts and of all wallets together, in USD. */
  sums: Record<string, string>;
  /** Money that is not yet assigned to a wallet, in USD: not a difference, but a payer waits for it. */
  suspense: string;
  differences: Difference[];
  /** Differences that are not listed. */
  unlisted: number;
}

/**
 * Checks the whole ledger against its entries, in one snapshot: balances, sum and number of entries of each transaction,
 * the balance after each entry, no negative balance except cash, sources and targets of each kind, reversals that mirror
 * their transaction, entries that match the hash of their request, and 0 as the total of all balances.
 *
 * Memory is bounded: PostgreSQL sorts on disk, and hashes are recomputed in batches.
 * @throws the signal's reason if it is aborted.
 */
export async function checkLedger(sql: Sql, { signal, timeoutMs = 0 }: CheckOptions = {}): Promise<LedgerCheck> {
  return sql.begin("isolation level repeatable read read only", async (tx) => {
    await limitStatements(tx, timeoutMs);
    const counts = await countLedger(tx);
    const differences: Difference[] = [];
    let unlisted = 0;
    const add = (kind: Difference["kind"], found: readonly Found[], total: number) => {
      differences.push(
        ...found
          .slice(0, MAX_LISTED)
          .map(({ subject, expected, found: actual }) => ({ kind, subject, expected, found: actual })),
      );
      unlisted += total - Math.min(found.length, MAX_LISTED);
    };
    for (const [kind, list] of RULES) {
      signal?.throwIfAborted();
      const { rows, total } = await list(tx, MAX_LISTED);
      add(kind, rows, total);
    }
    const changed = await listChangedRequests(tx, signal);
    add("request", changed.rows, changed.total);
    if (counts.total !== 0n) {
      add("sum", [{ subject: "all accounts", expected: "0", found: String(counts.total) }], 1);
    }
    const { accounts, transactions, entries, sums } = counts;
    return {
      ok: differences.length === 0,
      checked: { accounts, transactions, entries },
      sums: Object.fromEntries(sums.map(({ kind, micros }) => [kind, usd(micros)])),
      suspense: usd(sums.find(({ kind }) => kind === "suspense")?.micros ?? 0n),
      differences,
      unlisted,
    };
  });
}

interface CheckOptions {
  signal?: AbortSignal;
  /** Timeout of one statement; 0 for none. */
  timeoutMs?: number;
}

const RULES = [
  ["balance", listOtherBalances],
  ["transaction", listUnbalanced],
  ["chain", listBrokenChains],
  ["negative", listNegative],
  ["way", listWrongWays],
  ["reversal", listStrangeReversals],
] as const;

async function listChangedRequests(
  tx: Transaction,
  signal: AbortSignal | undefined,
): Promise<{ rows: Found[]; total: number }> {
  const rows: Found[] = [];
  let total = 0;
  let after = 0n;
  for (;;) {
    signal?.throwIfAborted();
    const requests = await listRequests(tx, after, BATCH);
    for (const { id, requestHash, ...request } of requests) {
      after = id;
      const expected = hashOfRequest(request);
      if (expected === requestHash) continue;
      total += 1;
      if (rows.length < MAX_LISTED) rows.push({ subject: `transaction ${id}`, expected, found: requestHash });
    }
    if (requests.length < BATCH) return { rows, total };
  }
}
