import { bankActions, bankPages } from "./bank/lists.ts";
import { boardActions, boardPages } from "./board/lists.ts";
import type { OpsAction, OpsPage } from "./contract.ts";
import { dataActions, dataPages } from "./data.ts";
import { depositActions, depositPages } from "./deposits/deposits.ts";
import { evidenceActions, evidencePages } from "./evidence.ts";
import { ledgerActions } from "./ledger/actions.ts";
import { ledgerPages } from "./ledger/pages.ts";
import { mailActions, mailPages } from "./mails/lists.ts";
import { paymentAppActions, paymentAppPages } from "./payment-app/orders.ts";
import { planActions, planPages } from "./plans/lists.ts";
import { searchPage } from "./search/search.ts";
import { settingsPage } from "./settings/settings.ts";
import { styleguidePage } from "./styleguide/styleguide.ts";
import { topupPage } from "./topups/topup.ts";

/** Every page at `/ops`. */
export const pages = [
  ...boardPages,
  ...evidencePages,
  ...dataPages,
  ...ledgerPages,
  ...paymentAppPages,
  ...bankPages,
  ...depositPages,
  topupPage,
  ...mailPages,
  ...planPages,
  searchPage,
  settingsPage,
  styleguidePage,
] as readonly OpsPage[];

/** Every action at `/ops`. */
export const actions: readonly OpsAction[] = [
  ...boardActions,
  ...evidenceActions,
  ...dataActions,
  ...ledgerActions,
  ...paymentAppActions,
  ...bankActions,
  ...depositActions,
  ...mailActions,
  ...planActions,
];
