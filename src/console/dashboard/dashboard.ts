import { type Account, findAccount, listHeldPlans } from "../../callers/account-store.ts";
import { listOwnKeys } from "../../callers/holder-key-store.ts";
import { type ListedPlan, listPlans } from "../../callers/plan-store.ts";
import { ACTIVE_KEYS } from "../../callers/store.ts";
import { number, timeText } from "../../frame/text/format.ts";
import { walletMicros } from "../../ledger/store.ts";
import { BANK_REMIND_DAYS, REMIND_DAYS } from "../../purchases/reminder.ts";
import { hasBank } from "../../topups/bank/method.ts";
import type { TopupMethod } from "../../topups/contract.ts";
import { configuredMethods } from "../../topups/methods.ts";
import { countPendingTopups, listPendingTopups } from "../../topups/topup-store.ts";
import { listRefusals, type Refusal } from "../../usage/call-minute-store.ts";
import { readUsage, type UsageFacts } from "../../usage/store.ts";
import { consolePage } from "../contract.ts";
import { outcomeOf } from "../outcomes.ts";
import { topupRow } from "../top-up/topup-row.ts";
import { type LimitBar, limitBars } from "./limits.ts";
import { nextSteps, planState, type PlanState, timeLeft } from "./state.ts";

const DAYS_SHOWN = 31;
const REFRESH_SECONDS = 10;
const MOST_PENDING = 10;
const CEILING = "service_ceiling_reached";

/** The state of an account: plan, calls, balance, keys, and the next steps of a newcomer. */
export const dashboardPage = consolePage({
  path: "/",
  nav: { label: "Dashboard", order: 10, group: "" },
  async show({ sql, settings }, { holder: { accountId } }) {
    const account = await findAccount(sql, { id: accountId });
    if (account === null) return null;
    const [held, plans, usage, balance, keys, refusals, pending, pendingCount] = await Promise.all([
      listHeldPlans(sql, accountId),
      listPlans(sql),
      readUsage(sql, accountId, DAYS_SHOWN),
      walletMicros(sql, accountId),
      listOwnKeys(sql, accountId, 0),
      listRefusals(sql, accountId),
      listPendingTopups(sql, accountId, MOST_PENDING),
      countPendingTopups(sql, accountId),
    ]);
    const reminded = hasBank(settings) ? BANK_REMIND_DAYS : REMIND_DAYS;
    const state = planState(held, { nowMs: usage.readAtMs, soonDays: reminded + 4 });
    const holds = state.kind === "running" || state.kind === "ending";
    const limits = plans.find(({ name }) => holds && name === state.plan) ?? null;
    const bars = limitBars(usage, limits);
    const isUsed = usage.days.some(({ requests }) => requests > 0n);
    const offered: readonly TopupMethod[] = configuredMethods(settings);
    const data = {
      suspendReason: account.suspendedAt === null ? null : (account.suspendReason ?? ""),
      state,
      limits,
      bars,
      banners: [
        ...limitBanners(bars, state.endsAt === null ? [] : plans.slice(plans.findIndex((one) => one === limits) + 1)),
        ...(limits?.day_limit === null ? ceilingBanners(refusals, usage.dayResetsAt) : []),
        ...planBanners(state, plans),
      ],
      stats: statsOf({
        account,
        state,
        usage,
        balance,
        keys: keys.working.filter(({ replacedBy }) => replacedBy === null).length,
        pending: pendingCount,
      }),
      quotaMails: account.quotaMails,
      keys: keys.working,
      refusals: refusals.map((one) => ({ ...one, ...outcomeOf(one.outcome) })),
      pending: pending.map((topup) => topupRow(topup, offered)),
      steps: nextSteps({
        hasBalance: balance > 0n,
        hasHadPlan: held.length > 0,
        hasKey: keys.working.length > 0,
        hasCalled: isUsed || keys.working.some(({ lastUsedAt }) => lastUsedAt !== null),
      }),
    };
    return { template: "dashboard/dashboard", title: "Dashboard", data, refreshSeconds: REFRESH_SECONDS };
  },
});

interface Facts {
  account: Account;
  state: PlanState;
  usage: UsageFacts;
  balance: bigint;
  keys: number;
  pending: number;
}

function statsOf({ state, usage, balance, keys, pending }: Facts) {
  const holds = state.kind === "running" || state.kind === "ending";
  const left = state.endsAt === null ? "no end" : `${timeLeft(Date.parse(state.endsAt) - usage.readAtMs)} left`;
  const daily = usage.days.toReversed().map(({ requests }) => Number(requests));
  return [
    {
      label: "Plan",
      value: state.plan ?? "none yet",
      note: [
        ...(state.kind === "over" ? ["ended"] : holds ? [left] : []),
        ...(state.next ? [`then ${state.next.plan}`] : []),
      ].join(", "),
      ...(state.kind === "over" && { tone: "bad", state: "bad" }),
      ...(state.kind === "ending" && { tone: "warn", state: "warn" }),
      href: "/console/plans",
    },
    {
      label: "Balance",
      value: { money: balance },
      unit: "USD",
      note: pending === 0 ? "" : `${pending} top-up${pending === 1 ? "" : "s"} pending`,
      href: "/console/top-up",
    },
    { label: "Keys", value: String(keys), unit: `of ${ACTIVE_KEYS}`, href: "/console/keys" },
    {
      label: `Calls, ${DAYS_SHOWN} days`,
      value: number(daily.reduce((sum, n) => sum + n, 0)),
      trend: { values: daily, label: `calls by day over the last ${DAYS_SHOWN} days` },
      href: "/console/usage",
    },
  ];
}

/**
 * Banners from 80 % of a limit. If both limits are at 100 %, the month comes first, because it lasts longer. They advise
 * one of the `larger` plans if it is on sale and raises the limit.
 */
function limitBanners(bars: readonly LimitBar[], larger: readonly ListedPlan[]) {
  return bars.toReversed().flatMap(({ name, used, limit, percent, tone, resetsAt, code, limitOf }) => {
    if (tone === "" || limit === null) return [];
    const counts = `${number(used)} of ${number(limit)}`;
    const until = timeText(new Date(resetsAt));
    const title = tone === "bad" ? `${name}: all used.` : `${name}: ${percent} % used.`;
    const canUpgrade = larger.some((plan) => plan.on_sale && (limitOf(plan) ?? limit + 1n) > limit);
    const refusal =
      tone === "bad"
        ? `Calls are refused with ${code} (429) until ${until}.`
        : `At 100 %, calls are refused with ${code} (429) until ${until}.`;
    const advice = canUpgrade && tone === "bad" ? " A larger plan takes effect immediately." : "";
    const action = { label: "Upgrade plan", href: "/console/plans" };
    return [{ tone, title, text: `${counts}. ${refusal}${advice}`, ...(canUpgrade && { action }) }];
  });
}

/** A banner if the ceiling that protects the service refused calls since the UTC day began. */
function ceilingBanners(refusals: readonly Refusal[], resetsAt: string) {
  const dayBegan = Date.parse(resetsAt) - 86_400_000;
  const isToday = ({ outcome, lastAt }: Refusal) => outcome === CEILING && Date.parse(lastAt) >= dayBegan;
  if (!refusals.some(isToday)) return [];
  const text = `It is far above fair use and protects the service. Calls above it are refused with ${CEILING} (429) until ${timeText(new Date(resetsAt))}. Ask the operator of this service if you need more.`;
  return [{ tone: "bad", title: "Calls today: the technical ceiling was reached.", text }];
}

function planBanners({ kind, plan, endsAt }: PlanState, plans: readonly ListedPlan[]) {
  if ((kind !== "ending" && kind !== "over") || endsAt === null) return [];
  const at = timeText(new Date(endsAt));
  if (kind === "over") {
    return [
      {
        tone: "bad",
        title: `Your plan ${plan} ended at ${at}.`,
        text: "Calls are refused with plan_expired (402) until you buy a plan.",
        action: { label: "Buy plan", href: "/console/plans" },
      },
    ];
  }
  const isOnSale = plans.some((one) => one.name === plan && one.on_sale);
  const renewal = isOnSale ? "Nothing renews by itself." : `${plan} is no longer on sale, so it cannot be renewed.`;
  return [
    {
      tone: "warn",
      title: `Your plan ${plan} ends at ${at}.`,
      text: `From then on calls are refused with plan_expired (402). ${renewal}`,
      action: { label: isOnSale ? "Renew plan" : "See plans", href: "/console/plans" },
    },
  ];
}
