import type { ConsoleAction, ConsolePage } from "../contract.ts";
import { buyAction, buyPage } from "./buy.ts";
import { plansPage } from "./plans.ts";
import { purchasePage, purchasesPage } from "./purchases.ts";

/** Pages of plans and purchases. */
export const planPages = [plansPage, buyPage, purchasesPage, purchasePage] as readonly ConsolePage[];

/** Actions of plans. */
export const planActions = [buyAction] as readonly ConsoleAction[];
