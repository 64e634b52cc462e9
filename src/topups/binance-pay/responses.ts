import { z } from "zod";
import { parseUsd } from "../../money.ts";
import { ORDER_CURRENCY } from "./method.ts";

/** The envelope of every response of the payment app. */
export const wrapped = z.object({
  status: z.string(),
  code: z.string(),
  data: z.unknown().optional(), // a refusal has none
  errorMessage: z.string().nullish(),
});

const id = z.string().regex(/^[A-Za-z0-9]{1,64}$/);
/** The end of the year 9999 in milliseconds, which both timestamptz and Date can hold. */
const LATEST_MS = 253_402_300_799_000;

/** A single-line text that fits a column. */
function line(longest: number) {
  return z
    .string()
    .max(longest)
    .regex(/^\P{Cc}*$/u, { error: "expected a text without control characters" });
}

const link = line(2_000).refine(
  (text) => URL.canParse(text) && new URL(text).protocol === "https:",
  "expected a URL with https",
);

/** An order that was created. */
export const madeOrder = z.object({
  prepayId: id,
  expireTime: z.int().positive().max(LATEST_MS),
  checkoutUrl: link,
  qrContent: line(2_000).min(1),
});
export type MadeOrder = z.infer<typeof madeOrder>;

/** The current state of an order. Amounts are a number or a text. */
export const queriedOrder = z.object({
  prepayId: id,
  merchantTradeNo: line(64),
  status: line(40),
  currency: line(20),
  orderAmount: z.union([line(40), z.number()]).transform(String),
});
export type QueriedOrder = z.infer<typeof queriedOrder>;

/** Public keys that sign notifications. */
export const certificates = z
  .array(
    z.object({
      certSerial: line(128).min(1),
      certPublic: z
        .string()
        .min(1)
        .max(10_000)
        .regex(/^[^\0]*$/),
    }),
  )
  .max(20);
export type Certificate = z.infer<typeof certificates>[number];

/** What we ordered. */
export interface Ordered {
  tradeNo: string;
  prepayId: string;
  micros: bigint;
}

/** The next step for an order. */
export type Verdict =
  | { kind: "waiting" }
  | { kind: "paid" }
  /** It differs from what we ordered: a person must check it. */
  | { kind: "strange"; reason: string }
  /** It ended without a payment; `state` is the new state of its top-up. */
  | { kind: "over"; state: "cancelled" | "expired" | "rejected"; reason: string };

const GIVEN_BACK = { state: "rejected", reason: "the payment app gave the money back to who sent it" } as const;
/** The payment app's final states without a payment. */
const OVER: ReadonlyMap<string, Omit<Extract<Verdict, { kind: "over" }>, "kind">> = new Map([
  ["CANCELED", { state: "cancelled", reason: "the order was cancelled" }],
  ["EXPIRED", { state: "expired", reason: "the order was not paid in time" }],
  ["ERROR", { state: "rejected", reason: "the payment app could not take the payment" }],
  ["REFUNDING", GIVEN_BACK],
  ["REFUNDED", GIVEN_BACK],
  ["FULL_REFUNDED", GIVEN_BACK],
]);

/**
 * Decides the next step for an order from its current state at the payment app. A payment counts only if reference,
 * amount and currency are as we ordered; a final state without payment counts whatever the amount.
 *
 * @example
 * const ours = { tradeNo: "RH1", prepayId: "7", micros: 25_170_000n };
 * const queried = { prepayId: "7", merchantTradeNo: "RH1", currency: "USDT", orderAmount: "25.17000000" };
 * decideOrder(ours, { ...queried, status: "PAID" }); // => { kind: "paid" }
 * decideOrder(ours, { ...queried, status: "PENDING" }); // => { kind: "waiting" }
 * decideOrder(ours, { ...queried, status: "PAID", orderAmount: "25.16" }).kind; // => "strange"
 */
export function decideOrder(ours: Ordered, queried: QueriedOrder): Verdict {
  const isOurs = queried.prepayId === ours.prepayId && queried.merchantTradeNo === ours.tradeNo;
  const over = OVER.get(queried.status);
  // nothing is credited, so the amount need not match: a wrong payment is refunded in the merchant portal
  if (isOurs && over !== undefined) return { kind: "over", ...over };
  const differences = [
    queried.prepayId === ours.prepayId ? null : `prepayId ${ours.prepayId}, came ${queried.prepayId}`,
    queried.merchantTradeNo === ours.tradeNo
      ? null
      : `merchantTradeNo ${ours.tradeNo}, came ${queried.merchantTradeNo}`,
    queried.currency === ORDER_CURRENCY ? null : `currency ${ORDER_CURRENCY}, came ${queried.currency}`,
    microsOf(queried.orderAmount) === ours.micros ? null : `${ours.micros} micro-units, came ${queried.orderAmount}`,
  ].filter((difference) => difference !== null);
  if (differences.length > 0) return { kind: "strange", reason: `expected ${differences.join("; ")}` };
  switch (queried.status) {
    case "INITIAL":
    case "PENDING":
      return { kind: "waiting" };
    case "PAID":
      return { kind: "paid" };
    default:
      return {
        kind: "strange",
        reason: `the payment app reports the unknown status ${JSON.stringify(queried.status)}`,
      };
  }
}

/**
 * Parses a decimal amount into micro-units; null if it is no amount, or finer than a micro-unit. Trailing zeros are
 * allowed.
 */
function microsOf(text: string): bigint | null {
  return parseUsd(text.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, ""));
}
