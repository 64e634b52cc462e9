import type { Offer, PurchaseKind } from "./offer.ts";

/** The offer that a form showed; nothing else is sold. Amounts are micro-units, times microseconds since 1970. */
export interface Quote {
  kind: PurchaseKind;
  plan: string;
  revision: bigint;
  listedMicros: bigint;
  discountMicros: bigint;
  startsAt: bigint | null;
  /** The moment for which it was computed. */
  asOf: bigint;
}

/** How long a quote is valid: enough to read two texts and to agree to new terms, in microseconds. */
export const QUOTE_HOLDS = 1_800_000_000n;

const NUMBER = /^\d{1,18}$/;

/** The quote of an offer. */
export function quoteOf(offer: Offer, asOf: bigint): Quote {
  const { kind, plan, discountMicros, startsAt } = offer;
  const { name, revision, priceMicros } = plan;
  return { kind, plan: name, revision, listedMicros: priceMicros, discountMicros, startsAt, asOf };
}

/**
 * Formats a quote for a form, without its plan, which is in the URL.
 *
 * @example
 * quoteText({ kind: "buy", plan: "Pro", revision: 3n, listedMicros: 99000000n, discountMicros: 0n, startsAt: null, asOf: 1n }); // => "buy~3~99000000~0~now~1"
 */
export function quoteText({ kind, revision, listedMicros, discountMicros, startsAt, asOf }: Quote): string {
  return [kind, revision, listedMicros, discountMicros, startsAt ?? "now", asOf].join("~");
}

/**
 * Parses the text of {@link quoteText}; null for any other text.
 *
 * @example
 * readQuote("Pro", "buy~3~99000000~0~now~1")?.listedMicros; // => 99000000n
 * readQuote("Pro", "buy~3~-1~0~now~1"); // => null
 */
export function readQuote(plan: string, text: string): Quote | null {
  const [kind = "", revision = "", listed = "", discount = "", startsAt = "", asOf = "", ...more] = text.split("~");
  if (more.length > 0 || !isKind(kind) || ![revision, listed, discount, asOf].every((one) => NUMBER.test(one))) {
    return null;
  }
  if (startsAt !== "now" && !NUMBER.test(startsAt)) return null;
  return {
    kind,
    plan,
    revision: BigInt(revision),
    listedMicros: BigInt(listed),
    discountMicros: BigInt(discount),
    startsAt: startsAt === "now" ? null : BigInt(startsAt),
    asOf: BigInt(asOf),
  };
}

/** Whether an offer matches a quote. */
export function isSameOffer(quote: Quote, offer: Offer): boolean {
  const now = quoteOf(offer, quote.asOf);
  return quoteText(now) === quoteText(quote) && now.plan === quote.plan;
}

function isKind(text: string): text is PurchaseKind {
  return ["buy", "renew", "upgrade", "downgrade"].includes(text);
}
