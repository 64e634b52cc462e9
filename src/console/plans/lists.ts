import type { ConsoleAction, ConsolePage } from "../contract.ts";
import { buyAction, buyPage } from "./buy.ts";
import { plansPage } from "./plans.ts";
import { purchasePage, purchasesPage } from "./purchases.ts";

/** Looking at plans and at what was bought. */
export const planPages = [plansPage, buyPage, purchasesPage, purchasePage] as readonly ConsolePage[];

/** Buying. */
export const planActions = [buyAction] as readonly ConsoleAction[];
