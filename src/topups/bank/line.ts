/**
 * A line of a bank statement, and where it may go:
 *
 *     new ──▶ matched ──▶ credited
 *      │ ▲      │ ▲ │
 *      │ └──────┘ │ └────▶ rejected ──▶ returned
 *      │ taken    │                        ▲
 *      ▼ back     ▼                        │
 *     suspense ◀──┘ ───────────────────────┘
 *
 * What is matched or to be returned waits for another person. A line that was rejected never reaches a wallet.
 */
export type LineState = "new" | "matched" | "credited" | "suspense" | "rejected" | "returned";

/** What a statement says of money that came in. */
export interface StatementLine {
  /** Which account of ours, by a short name. */
  bank: string;
  /** The bank's own id of the line: with `bank` it is the line's, once. */
  bankRef: string;
  /** A date, `2026-11-21`. */
  valueDate: string;
  currency: string;
  /** In the smallest unit of the currency, above zero. */
  amountMinor: bigint;
  sender: string;
  /** What the sender wrote with it. */
  remittance: string;
}

/** A line as it is kept. People are named by their addresses, and known by their ids. */
export interface BankLine extends StatementLine {
  id: bigint;
  state: LineState;
  importId: bigint | null;
  enteredBy: string;
  enteredById: string;
  enteredAt: Date;
  /** USD for one unit in 1e-8, from when it was posted; null before. */
  rateE8: bigint | null;
  /** What it is worth in suspense, in 1e-6 USD; null where it never was there. */
  suspenseMicros: bigint | null;
  suspenseTransactionId: bigint | null;
  creditTransactionId: bigint | null;
  returnTransactionId: bigint | null;
  /** Why it is held or was rejected. */
  reason: string | null;
}

/** A line in few words, for the audit log and messages. */
export function lineName({ id, bank, bankRef }: Pick<BankLine, "id" | "bank" | "bankRef">): string {
  return `bank line ${id} (${bank} ${bankRef})`;
}
