import type { ConsoleAction, ConsolePage } from "../contract.ts";
import { announceAction, bankFormPage, bankTransferPage, cancelTransferAction } from "./bank.ts";
import { binancePayActions, binancePayPages } from "./binance-pay.ts";
import { demoAction, demoPage } from "./demo.ts";
import { topUpPage } from "./top-up.ts";
import { usdtPage } from "./usdt.ts";

/** Pages of all payment methods. */
export const topUpPages = [
  topUpPage,
  demoPage,
  bankFormPage,
  bankTransferPage,
  ...binancePayPages,
  usdtPage,
] as readonly ConsolePage[];

/** Actions of all payment methods. */
export const topUpActions = [
  demoAction,
  announceAction,
  cancelTransferAction,
  ...binancePayActions,
] as readonly ConsoleAction[];
