import { randomInt } from "node:crypto";

/** Digits and capitals that are not easily confused. */
const SYMBOLS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
const OUR_TRADE_NO = new RegExp(`^RH[${SYMBOLS}]{20}[0-9]$`);

/** Makes a new reference of a top-up; an attempt to create its order appends a digit, which makes the trade number. */
export function makeOrderReference(): string {
  return `RH${Array.from({ length: 20 }, () => SYMBOLS[randomInt(SYMBOLS.length)]).join("")}`;
}

/** Whether a trade number has the form of ours: other shops of the same merchant have others. */
export function isOurTradeNo(tradeNo: string): boolean {
  return OUR_TRADE_NO.test(tradeNo);
}
