import type { OpsAction, OpsPage } from "../contract.ts";
import { setPlanAction } from "./actions.ts";
import { planPage, planPreviewPage, plansPage } from "./plans.ts";

/** Looking at plans. */
export const planPages = [plansPage, planPage, planPreviewPage] as readonly OpsPage[];

/** Changing them. */
export const planActions = [setPlanAction] as readonly OpsAction[];
