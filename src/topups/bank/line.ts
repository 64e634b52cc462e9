/**
 * A line of a bank statement, and where it may go:
 *
 *     new ──▶ matched ──▶ credited
 *      │ ▲      │ ▲ │
 *      │ └──────┘ │ └────▶ rejected ──▶ returned
 *      │ taken    │                        ▲
 *      ▼ back     ▼                        │
 *     suspense ◀──┘ ───────────────────────┘
 *      │
 *      └────▶ reversed
 *
 * What is matched or to be returned waits for another person. A line that was rejected never reaches a wallet.
 * A line that was held at a wrong rate is reversed, and entered again under another bank reference.
 */
export type LineState = "new" | "matched" | "credited" | "suspense" | "rejected" | "returned" | "reversed";

/** A credit on a bank statement. */
export interface StatementLine {
  /** Our account, by a short name. */
  bank: string;
  /** The bank's own id of the line, unique with `bank`. */
  bankRef: string;
  /** A date, `2026-11-21`. */
  valueDate: string;
  currency: string;
  /** In the smallest unit of the currency, above zero. */
  amountMinor: bigint;
  sender: string;
  /** The text from the sender. */
  remittance: string;
}

/** A stored line. People are shown by e-mail address and identified by id. */
export interface BankLine extends StatementLine {
  id: bigint;
  state: LineState;
  importId: bigint | null;
  enteredBy: string;
  enteredById: string;
  enteredAt: Date;
  /** When its author began: a statement may be imported long after it was sent. */
  begunAt: Date;
  /** USD for one unit in 1e-8, as of the posting; null before it. */
  rateE8: bigint | null;
  /** The value posted to suspense, in 1e-6 USD; null if the line was never there. */
  suspenseMicros: bigint | null;
  suspenseTransactionId: bigint | null;
  /** Who put it into suspense, or made the match that was rejected; null if the line was never there. */
  heldBy: string | null;
  heldById: string | null;
  creditTransactionId: bigint | null;
  returnTransactionId: bigint | null;
  /** Why it is in suspense or was rejected. */
  reason: string | null;
}

const FACTS = [
  ["valueDate", "value date"],
  ["currency", "currency"],
  ["amountMinor", "amount"],
  ["sender", "sender"],
  ["remittance", "text"],
] as const;

/** The facts in which two lines of the same bank reference differ. */
export function differsIn(line: StatementLine, other: StatementLine): string[] {
  return FACTS.filter(([fact]) => line[fact] !== other[fact]).map(([, name]) => name);
}

/** Names a line for the audit log and messages. */
export function lineName({ id, bank, bankRef }: Pick<BankLine, "id" | "bank" | "bankRef">): string {
  return `bank line ${id} (${bank} ${bankRef})`;
}
