import { type Account, findAccount, listHeldPlans } from "../../callers/account-store.ts";
import { type ListedPlan, listPlanSettings, type PlanSettings } from "../../callers/plan-store.ts";
import { ACTIVE_KEYS, isActive, listWorkingKeys } from "../../callers/key-store.ts";
import { number, timeText } from "../../frame/text/format.ts";
import type { Buyer } from "../../purchases/check-order.ts";
import { isOffer, type Offer, offerOf } from "../../purchases/offer.ts";
import { readBuyer } from "../../purchases/state-store.ts";
import { hasBank } from "../../topups/bank/method.ts";
import type { TopupMethod } from "../../topups/contract.ts";
import { configuredMethods } from "../../topups/methods.ts";
import { countPendingTopups, listPendingTopups } from "../../topups/topup-store.ts";
import { listRefusals } from "../../usage/call-minute-store.ts";
import { readUsage, type UsageFacts } from "../../usage/store.ts";
import { consolePage } from "../contract.ts";
import { outcomeOf } from "../outcomes.ts";
import { topupRow } from "../top-up/topup-row.ts";
import { type LimitBar, limitBars } from "./limits.ts";
import { nextSteps, planState, type PlanState, timeLeft } from "./state.ts";

const DAYS_SHOWN = 31;
const REFRESH_SECONDS = 10;
const MOST_PENDING = 10;

/** The state of an account: plan, calls, balance, keys, and the next steps of a newcomer. */
export const dashboardPage = consolePage({
  path: "/",
  nav: { label: "Dashboard", order: 10, group: "" },
  async show({ sql, settings }, { holder: { accountId } }) {
    const [account, buyer] = await Promise.all([findAccount(sql, { id: accountId }), readBuyer(sql, accountId)]);
    if (account === null || buyer === null) return null;
    const [held, plans, usage, keys, refusals, pending, pendingCount] = await Promise.all([
      listHeldPlans(sql, accountId),
      listPlanSettings(sql),
      readUsage(sql, accountId, DAYS_SHOWN),
      listWorkingKeys(sql, accountId),
      listRefusals(sql, accountId),
      listPendingTopups(sql, accountId, MOST_PENDING),
      countPendingTopups(sql, accountId),
    ]);
    const balance = buyer.balanceMicros;
    const offers = offersOf(buyer);
    const state = planState(held, { nowMs: usage.readAtMs, hasBank: hasBank(settings) });
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
        ...limitBanners(bars, upgradesOf(plans, offers)),
        ...ceilingBanners(limits, usage),
        ...planBanners(state, offers),
      ],
      stats: statsOf({
        account,
        state,
        usage,
        balance,
        keys: keys.filter(isActive).length,
        pending: pendingCount,
      }),
      quotaMails: account.quotaMails,
      keys,
      refusals: refusals.map((one) => ({ ...one, ...outcomeOf(one.outcome) })),
      pending: pending.map((topup) => topupRow(topup, offered)),
      steps: nextSteps({
        hasBalance: balance > 0n,
        hasHadPlan: held.length > 0,
        hasKey: keys.length > 0,
        hasCalled: isUsed || keys.some(({ lastUsedAt }) => lastUsedAt !== null),
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

/** What the account can buy now. */
function offersOf(buyer: Buyer): Offer[] {
  if (buyer.isSuspended) return [];
  return buyer.plans.map((plan) => offerOf(plan, buyer.held, { now: buyer.now })).filter(isOffer);
}

/** Plans that would take effect immediately. */
function upgradesOf<Plan extends ListedPlan>(plans: readonly Plan[], offers: readonly Offer[]): Plan[] {
  const names = new Set(offers.filter(({ kind }) => kind === "upgrade").map(({ plan }) => plan.name));
  return plans.filter(({ name }) => names.has(name));
}

/**
 * Banners from 80 % of a limit. If both limits are at 100 %, the month comes first, because it lasts longer. They advise
 * one of the `upgrades` if it raises the limit.
 */
function limitBanners(bars: readonly LimitBar[], upgrades: readonly ListedPlan[]) {
  return bars.toReversed().flatMap(({ name, used, limit, percent, tone, resetsAt, code, limitOf }) => {
    if (tone === "" || limit === null) return [];
    const counts = `${number(used)} of ${number(limit)}`;
    const until = timeText(new Date(resetsAt));
    const title = tone === "bad" ? `${name}: all used.` : `${name}: ${percent} % used.`;
    const canUpgrade = upgrades.some((plan) => (limitOf(plan) ?? limit + 1n) > limit);
    const refusal =
      tone === "bad"
        ? `Calls are refused with ${code} (429) until ${until}.`
        : `At 100 %, calls are refused with ${code} (429) until ${until}.`;
    const advice = canUpgrade && tone === "bad" ? " A larger plan takes effect immediately." : "";
    const action = { label: "Upgrade plan", href: "/console/plans" };
    return [{ tone, title, text: `${counts}. ${refusal}${advice}`, ...(canUpgrade && { action }) }];
  });
}

/** A banner while the ceiling that protects the service refuses calls. */
function ceilingBanners(plan: PlanSettings | null, { dayUsed, dayResetsAt }: UsageFacts) {
  if (plan === null || plan.day_limit !== null || plan.day_ceiling === null || dayUsed < plan.day_ceiling) return [];
  const text = `It is far above fair use and protects the service. Calls above it are refused with service_ceiling_reached (429) until ${timeText(new Date(dayResetsAt))}. Ask the operator of this service if you need more.`;
  return [{ tone: "bad", title: "Calls today: the technical ceiling was reached.", text }];
}

const NOTHING_TO_BUY = "You cannot buy a plan now; ask the operator of this service.";

function planBanners({ kind, plan, endsAt, next }: PlanState, offers: readonly Offer[]) {
  if ((kind !== "ending" && kind !== "over") || endsAt === null) return [];
  const [at, href] = [timeText(new Date(endsAt)), "/console/plans"];
  if (kind === "over") {
    const title = `Your plan ${plan} ended at ${at}.`;
    const refused = "Calls are refused with plan_expired (402)";
    if (next !== null) {
      const text = `${refused} until ${next.plan} begins, at ${timeText(new Date(next.startsAt))}.`;
      return [{ tone: "bad", title, text }];
    }
    if (offers.length === 0) return [{ tone: "bad", title, text: `${refused}. ${NOTHING_TO_BUY}` }];
    return [{ tone: "bad", title, text: `${refused} until you buy a plan.`, action: { label: "Buy plan", href } }];
  }
  const title = `Your plan ${plan} ends at ${at}.`;
  const refused = "From then on calls are refused with plan_expired (402).";
  if (offers.length === 0) return [{ tone: "warn", title, text: `${refused} ${NOTHING_TO_BUY}` }];
  const canRenew = offers.some((offer) => offer.kind === "renew" && offer.plan.name === plan);
  const renewal = canRenew ? "Nothing renews by itself." : `${plan} is no longer on sale, so it cannot be renewed.`;
  const action = { label: canRenew ? "Renew plan" : "See plans", href };
  return [{ tone: "warn", title, text: `${refused} ${renewal}`, action }];
}
