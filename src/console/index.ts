import { accountActions, accountPages } from "./account/account.ts";
import type { ConsoleAction, ConsolePage } from "./contract.ts";
import { dashboardPage } from "./dashboard/dashboard.ts";
import { firstCallAction, firstCallPage } from "./first-call/first-call.ts";
import { createKeyAction, revokeKeyAction, rotateKeyAction } from "./keys/actions.ts";
import { keysPage } from "./keys/keys.ts";
import { planActions, planPages } from "./plans/lists.ts";
import { requestsPage } from "./requests/requests.ts";
import { statementPages } from "./statement/statement.ts";
import { topUpActions, topUpPages } from "./top-up/lists.ts";
import { usageFile, usagePage } from "./usage/usage.ts";

/** All pages of `/console`. */
export const pages = [
  dashboardPage,
  ...planPages,
  ...statementPages,
  ...topUpPages,
  keysPage,
  requestsPage,
  usagePage,
  usageFile,
  firstCallPage,
  ...accountPages,
] as readonly ConsolePage[];

/** All actions of `/console`. */
export const actions = [
  createKeyAction,
  rotateKeyAction,
  revokeKeyAction,
  firstCallAction,
  ...planActions,
  ...topUpActions,
  ...accountActions,
] as readonly ConsoleAction[];
