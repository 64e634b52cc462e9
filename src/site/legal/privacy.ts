import { SIGN_UP_SECONDS } from "../../accounts/holders/sign-up.ts";
import { KNOWN_SECONDS } from "../../accounts/identity/devices.ts";
import { TRIES_KEPT_SECONDS } from "../../accounts/identity/tries.ts";
import { USAGE_DAYS_KEPT_DAYS, USAGE_FACTS_KEPT_DAYS } from "../../housekeeping/limits.ts";
import { ENDED_KEPT_DAYS } from "../../mail/limits.ts";
import type { SitePage } from "../send-page.ts";

/** A console session ends after two weeks and is deleted a day later; one at `/ops` ends sooner. */
const SIGN_IN_DAYS = 15;
const HOUR_SECONDS = 3_600;

/** The page on personal data and its retention, with the numbers that the service uses. */
export function privacyPage({
  operator,
  payloadHours,
}: {
  operator: string | undefined;
  payloadHours: number | undefined;
}): SitePage {
  return {
    path: "/privacy",
    template: "legal/privacy",
    kind: "reading",
    title: "Privacy",
    description:
      "Which personal data Roundhouse stores, what for, and how long. No tracking, and cookies for signing in alone.",
    data: {
      operator,
      payloadHours,
      usageDays: USAGE_FACTS_KEPT_DAYS,
      usageSumDays: USAGE_DAYS_KEPT_DAYS,
      mailDays: ENDED_KEPT_DAYS,
      signInDays: SIGN_IN_DAYS,
      knownDays: KNOWN_SECONDS / (24 * HOUR_SECONDS),
      signUpHours: SIGN_UP_SECONDS / HOUR_SECONDS,
      triesHours: TRIES_KEPT_SECONDS / HOUR_SECONDS,
    },
  };
}
