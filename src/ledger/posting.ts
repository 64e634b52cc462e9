import { hash } from "node:crypto";
import canonicalize from "canonicalize";
import { sumMicros } from "../money.ts";

/** Where money is, or comes from: the wallet of an account (`owner` is its id), or one of ours. */
export type LedgerSide =
  | { kind: "wallet"; owner: bigint }
  | { kind: "cash_bank" | "cash_onchain" | "cash_payapp" | "cash_demo" | "revenue" | "suspense" };

/** How much a side gets (above zero) or gives (below), in micro-units. */
export interface Leg {
  side: LedgerSide;
  micros: bigint;
}

/** One movement of money. `key` names it forever: asked for again it is the same movement, not another. */
export interface Posting {
  kind: "topup" | "purchase" | "suspense" | "placement" | "reversal";
  key: string;
  legs: readonly Leg[];
  meta?: Record<string, string>;
  /** The transaction that a reversal takes back. */
  reverses?: bigint;
}

/**
 * From where to where money goes by each kind. It enters a wallet from cash or from what could not be placed at first,
 * and leaves it as our revenue; a reversal mirrors another transaction, which the database checks.
 */
const WAYS: Record<Exclude<Posting["kind"], "reversal">, { from: RegExp; to: RegExp }> = {
  topup: { from: /^cash_/, to: /^wallet$/ },
  purchase: { from: /^wallet$/, to: /^revenue$/ },
  // and out of it again, where a bank sends back what could not be placed: it never was anybody's here
  suspense: { from: /^cash_|^suspense$/, to: /^suspense$|^cash_/ },
  placement: { from: /^suspense$/, to: /^wallet$/ },
};

/**
 * Refuses what no caller may ask for; each of these is a fault of the program that asks.
 * @throws Error where legs do not balance, name a side twice, or go a way that is not one of their kind.
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

/** A request as its hash sees it: sides by {@link sideName}, amounts and ids as text. */
export interface RequestParts {
  kind: string;
  key: string;
  legs: readonly { side: string; micros: string }[];
  meta: Readonly<Record<string, unknown>>;
  reverses: string | null;
}

/** The hash of what a posting asks for; see {@link hashOfRequest}. */
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
 * What tells one request from another under the same key: SHA-256, in hex, over its canonical JSON (RFC 8785). It also
 * ties a stored transaction to its entries and its key: whoever changes an amount on both sides leaves the sums right, and
 * not this; nor does another key, under which the same money could come again.
 */
export function hashOfRequest(request: RequestParts): string {
  const text = canonicalize(request);
  if (text === undefined) throw new Error("ledger: a request has no canonical form");
  return hash("sha256", text);
}

/** A side in few words: `wallet 17`, `cash_bank`. */
export function sideName(side: LedgerSide): string {
  return side.kind === "wallet" ? `wallet ${side.owner}` : side.kind;
}

function isWayOf(kind: keyof typeof WAYS, { side, micros }: Leg): boolean {
  return (micros > 0n ? WAYS[kind].to : WAYS[kind].from).test(side.kind);
}
