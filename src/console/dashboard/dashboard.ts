import { z } from "zod";
import { findAccount, listHeldPlans } from "../../callers/account-store.ts";
import { listOwnKeys } from "../../callers/own-key-store.ts";
import { listPlans } from "../../callers/plan-store.ts";
import { ACTIVE_KEYS } from "../../callers/store.ts";
import { callsPlot } from "../../charts/over-time.ts";
import { figureOf } from "../../frame/figure.ts";
import { number } from "../../frame/format.ts";
import { usd } from "../../money.ts";
import { walletMicros } from "../../ledger/store.ts";
import { readUsage } from "../../usage/store.ts";
import type { ConsolePage } from "../contract.ts";
import { nextSteps, planState, timeLeft } from "./state.ts";

const DAYS_PLOTTED = 31;

const query = z.object({});

/** Where an account stands: its plan, its calls, its balance, its keys, and what a newcomer does next. */
export const dashboardPage: ConsolePage<z.infer<typeof query>> = {
  path: "/",
  nav: { label: "Dashboard", order: 10, group: "" },
  query,
  async show({ sql, log }, { holder: { accountId } }) {
    const account = await findAccount(sql, { id: accountId });
    if (account === null) return null;
    const [held, plans, usage, balance, keys] = await Promise.all([
      listHeldPlans(sql, accountId),
      listPlans(sql),
      readUsage(sql, accountId, DAYS_PLOTTED),
      walletMicros(sql, accountId),
      listOwnKeys(sql, accountId, 0),
    ]);
    const plotted = usage.days.toReversed().map(({ date, requests }) => ({ date, requests: Number(requests) }));
    const figure = await figureOf(log, callsPlot(`Your calls on the last ${DAYS_PLOTTED} days`, plotted), {
      columns: ["UTC day", "calls"],
      rows: usage.days.map(({ date, requests }) => [date, number(requests)]),
    });
    const state = planState(held, usage.readAtMs);
    const holds = state.kind === "running" || state.kind === "ending";
    const limits = plans.find(({ name }) => holds && name === state.plan) ?? null;
    const isUsed = usage.days.some(({ requests }) => requests > 0n);
    const data = {
      suspendReason: account.suspendedAt === null ? null : (account.suspendReason ?? ""),
      state,
      left: state.endsAt === null ? "without end" : timeLeft(Date.parse(state.endsAt) - usage.readAtMs),
      limits,
      bars: [
        { name: "Calls today", used: usage.dayUsed, limit: limits?.day_limit ?? null, resetsAt: usage.dayResetsAt },
        {
          name: "Calls this month",
          used: usage.monthUsed,
          limit: limits?.month_limit ?? null,
          resetsAt: usage.monthResetsAt,
        },
      ],
      balance: usd(balance),
      keys: keys.working,
      mostKeys: ACTIVE_KEYS,
      steps: nextSteps({
        hasBalance: balance > 0n,
        hasHadPlan: held.length > 0,
        hasKey: keys.working.length > 0,
        hasCalled: isUsed || keys.working.some(({ lastUsedAt }) => lastUsedAt !== null),
      }),
      figure,
    };
    return { template: "dashboard/dashboard", title: "Dashboard", data };
  },
};
