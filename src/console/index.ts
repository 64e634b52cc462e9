import { accountDataFile, accountPage, mailsAction } from "./account/account.ts";
import { type ConsoleAction, type ConsolePage } from "./contract.ts";
import { dashboardPage } from "./dashboard/dashboard.ts";
import { firstCallAction, firstCallPage } from "./first-call/first-call.ts";
import { createKeyAction, revokeKeyAction, rotateKeyAction } from "./keys/actions.ts";
import { keysPage } from "./keys/keys.ts";
import { buyAction, buyPage } from "./plans/buy.ts";
import { plansPage } from "./plans/plans.ts";
import { purchasePage, purchasesPage } from "./plans/purchases.ts";
import { requestsPage } from "./requests/requests.ts";
import { statementPages } from "./statement/statement.ts";
import { announceAction, bankFormPage, bankTransferPage, cancelTransferAction } from "./top-up/bank.ts";
import { beginBinancePayAction, binancePayOrderPage, binancePayPage } from "./top-up/binance-pay.ts";
import { demoAction, demoPage } from "./top-up/demo.ts";
import { topUpPage } from "./top-up/top-up.ts";
import { usdtPage } from "./top-up/usdt.ts";
import { usageFile, usagePage } from "./usage/usage.ts";

/** All pages of `/console`. */
export const pages: readonly ConsolePage[] = [
  dashboardPage,
  buyPage,
  plansPage,
  purchasesPage,
  purchasePage,
  ...statementPages,
  bankFormPage,
  bankTransferPage,
  binancePayPage,
  binancePayOrderPage,
  demoPage,
  topUpPage,
  usdtPage,
  keysPage,
  requestsPage,
  usagePage,
  usageFile,
  firstCallPage,
  accountPage,
  accountDataFile,
];

/** All actions of `/console`. */
export const actions: readonly ConsoleAction[] = [
  buyAction,
  announceAction,
  cancelTransferAction,
  beginBinancePayAction,
  demoAction,
  createKeyAction,
  rotateKeyAction,
  revokeKeyAction,
  firstCallAction,
  mailsAction,
];
