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

/** Transactions whose hashes are recomputed at a time: some hundred kilobytes. */
const BATCH = 2_000;
/** Differences of one kind that are told; a ledger with more needs its backup, and the rest is counted. */
const MAX_LISTED = 20;

/** Something that is not as it must be: `kind` says which rule, `subject` where; amounts are in micro-units. */
export interface Difference extends Found {
  kind: "balance" | "transaction" | "chain" | "negative" | "way" | "reversal" | "request" | "sum";
}

/** What a check of the whole ledger found. */
export interface LedgerCheck {
  ok: boolean;
  checked: Pick<LedgerCounts, "accounts" | "transactions" | "entries">;
  /** What our own accounts hold, and all wallets together, in USD. */
  sums: Record<string, string>;
  /** Money that was not placed yet, in USD: no difference, but someone waits for it. */
  suspense: string;
  differences: Difference[];
  /** How many more differences there are than those told. */
  untold: number;
}

/**
 * Recomputes the ledger from its entries, as it is at one moment: every balance, every transaction's sum and number of
 * entries, along each account what was left after each entry, that nothing but cash went below zero, from where to where
 * each kind moved money, that reversals mirror what they reverse, that entries are those that were asked for (by the
 * request's hash), and that all balances together are 0.
 *
 * PostgreSQL does it in sorted sets, and hashes are recomputed in batches, so that memory is bounded for any length.
 * @throws the signal's reason where it is aborted.
 */
export async function checkLedger(sql: Sql, { signal, timeoutMs = 0 }: CheckOptions = {}): Promise<LedgerCheck> {
  return sql.begin("isolation level repeatable read read only", async (tx) => {
    await limitStatements(tx, timeoutMs);
    const counts = await countLedger(tx);
    const differences: Difference[] = [];
    let untold = 0;
    const add = (kind: Difference["kind"], found: readonly Found[], total: number) => {
      differences.push(
        ...found
          .slice(0, MAX_LISTED)
          .map(({ subject, expected, found: actual }) => ({ kind, subject, expected, found: actual })),
      );
      untold += total - Math.min(found.length, MAX_LISTED);
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
      untold,
    };
  });
}

interface CheckOptions {
  signal?: AbortSignal;
  /** The longest that one statement may take; without it, as long as it needs. */
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
