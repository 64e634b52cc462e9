import { hash } from "node:crypto";
import canonicalize from "canonicalize";
import { sumMicros } from "../money.ts";

/** An account of the ledger: the wallet of an account (`owner` is its id), or one of ours. */
export type LedgerSide =
  | { kind: "wallet"; owner: bigint }
  | { kind: "cash_bank" | "cash_onchain" | "cash_payapp" | "cash_demo" | "revenue" | "suspense" };

/** The amount that a side receives (positive) or pays (negative), in micro-units. */
export interface Leg {
  side: LedgerSide;
  micros: bigint;
}

/** One movement of money. `key` makes it idempotent: the same key never moves money twice. */
export interface Posting {
  kind: "topup" | "purchase" | "suspense" | "placement" | "reversal";
  key: string;
  legs: readonly Leg[];
  meta?: Record<string, string>;
  /** The transaction that a reversal undoes. */
  reverses?: bigint;
}

/**
 * Source and target of each kind. A wallet receives money from cash or suspense and pays it to revenue. The database
 * checks that a reversal mirrors its transaction.
 */
const WAYS: Record<Exclude<Posting["kind"], "reversal">, { from: RegExp; to: RegExp }> = {
  topup: { from: /^cash_/, to: /^wallet$/ },
  purchase: { from: /^wallet$/, to: /^revenue$/ },
  // also back to cash, when the bank returns money that no account could be found for
  suspense: { from: /^cash_|^suspense$/, to: /^suspense$|^cash_/ },
  placement: { from: /^suspense$/, to: /^wallet$/ },
};

/**
 * Asserts that a posting is valid; an invalid one is a bug of the caller.
 * @throws Error if legs do not balance, name a side twice, or have a source or target that their kind does not allow.
 */
export function assertPosting(posting: Posting): void {
  const expected = whatIsExpected(posting);
  if (expected === null) return;
  throw new Error(`ledger: expected ${expected} (key ${JSON.stringify(posting.key.slice(0, 200))})`);
}

function whatIsExpected({ kind, key, legs, reverses }: Posting): string | null {
  const named = legs.map(({ side, micros }) => `${sideName(side)} ${micros}`).join(", ");
  const total = sumMicros(legs.map(({ micros }) => micros));
  if (key.length < 1 || key.length > 200) return `a key of 1 to 200 characters, got ${key.length}`;
  if (legs.length < 2) return `two legs or more, got ${legs.length}`;
  if (total !== 0n) return `legs with the sum 0, got ${total} micro-units`;
  if (legs.some(({ micros }) => micros === 0n)) return "legs that each move something, got one of 0";
  if (new Set(legs.map(({ side }) => sideName(side))).size < legs.length) return `each side once, got ${named}`;
  if ((kind === "reversal") !== (reverses !== undefined)) {
    return `reversals, and nothing else, to name what they reverse, got ${kind} of ${reverses ?? "nothing"}`;
  }
  if (kind === "reversal" || legs.every((leg) => isWayOf(kind, leg))) return null;
  return `a ${kind} from ${WAYS[kind].from.source} to ${WAYS[kind].to.source}, got ${named}`;
}

/** The values that a request hash covers: sides by {@link sideName}, amounts and ids as text. */
export interface RequestParts {
  kind: string;
  key: string;
  legs: readonly { side: string; micros: string }[];
  meta: Readonly<Record<string, unknown>>;
  reverses: string | null;
}

/** The request hash of a posting; see {@link hashOfRequest}. */
export function requestHash({ kind, key, legs, meta = {}, reverses }: Posting): string {
  return hashOfRequest({
    kind,
    key,
    legs: legs.map(({ side, micros }) => ({ side: sideName(side), micros: String(micros) })),
    meta,
    reverses: reverses === undefined ? null : String(reverses),
  });
}

/**
 * SHA-256, in hex, over the canonical JSON (RFC 8785) of a request. It distinguishes requests with the same key, and binds
 * a stored transaction to its entries and key: an amount that is changed on both sides keeps the sums, but not this hash.
 */
export function hashOfRequest(request: RequestParts): string {
  const text = canonicalize(request);
  if (text === undefined) throw new Error("ledger: a request has no canonical form");
  return hash("sha256", text);
}

/** The name of a side: `wallet 17`, `cash_bank`. */
export function sideName(side: LedgerSide): string {
  return side.kind === "wallet" ? `wallet ${side.owner}` : side.kind;
}

function isWayOf(kind: keyof typeof WAYS, { side, micros }: Leg): boolean {
  return (micros > 0n ? WAYS[kind].to : WAYS[kind].from).test(side.kind);
}
