import { letter, type Letter } from "../mail/letter.ts";

/** A limit of an account that is used to 80 % or more. */
export interface NearLimit {
  plan: string;
  period: "day" | "month";
  /** Calls since the day or month began (UTC), and how many the plan allows. */
  used: bigint;
  limit: bigint;
  /** Whether the holder can change to a plan with a higher limit now: one is on sale, and no plan of the account lacks an end. */
  canUpgrade: boolean;
}

const NUMBERS = new Intl.NumberFormat("en-US");
const TEXTS = {
  day: { of: "today's", code: "day_quota_exceeded", resets: "at 00:00 UTC" },
  month: { of: "this month's", code: "month_quota_exceeded", resets: "on the 1st at 00:00 UTC" },
} as const;

/**
 * The mail to a holder whose calls reach 80 % or 100 % of a limit.
 * @param site our public address, without a slash at its end; null if it is not known
 */
export function quotaLetter({ plan, period, used, limit, canUpgrade }: NearLimit, site: string | null): Letter {
  const { of, code, resets } = TEXTS[period];
  const isUsedUp = used >= limit;
  const share = isUsedUp ? "all" : "80 %";
  const counts = `${NUMBERS.format(used)} of ${NUMBERS.format(limit)} calls`;
  const more = canUpgrade
    ? `A larger plan takes effect immediately, and the unused part of a plan that you bought is credited against its price:\n${pathOf(site, "/console/plans")}`
    : "Ask the operator of this service if you need more.";
  return letter(isUsedUp ? "quota-used-up" : "quota-near-limit", `You have used ${share} of ${of} calls`, [
    `Your account has used ${counts} of its plan ${plan} ${period === "day" ? "today" : "this month"} (UTC).`,
    isUsedUp
      ? `Further calls are refused with ${code} (429) and cost nothing. The limit resets ${resets}.`
      : `At 100 %, calls are refused with ${code} (429) until the limit resets ${resets}.`,
    more,
    `Turn these mails off:\n${pathOf(site, "/console/account")}`,
  ]);
}

function pathOf(site: string | null, path: string): string {
  return site === null ? path : site + path;
}
