import { thousands, usd } from "../../money.ts";
import type { TopupMethod } from "../contract.ts";
import { binancePayOf } from "../../config/binance-pay.ts";

/**
 * Smallest and largest order in micro-units: a smaller one costs more in fees than it brings, a larger one is paid in
 * parts.
 */
export const ORDER_MICROS = { least: 5_000_000n, most: 10_000_000_000n } as const;
/** Every order is in USDT, which is credited as USD. */
export const ORDER_CURRENCY = "USDT";
/** How long an order can be paid, in minutes; the payment app allows an hour. */
export const ORDER_MINUTES = 45;

/** Paying in USDT with the Binance app. */
export const binancePay: TopupMethod = {
  id: "binance-pay",
  label: "Binance Pay",
  path: "/binance-pay",
  isConfigured: (settings) => binancePayOf(settings) !== null,
  about: () => ({
    time: "A minute or two after you have paid in the app.",
    minimum: `${thousands(usd(ORDER_MICROS.least))} USDT, and at most ${thousands(usd(ORDER_MICROS.most))} USDT at a time.`,
    credited: "1 USDT as 1 USD, exactly the amount of the order.",
  }),
};
