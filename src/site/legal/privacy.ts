import { USAGE_FACTS_KEPT_DAYS } from "../../housekeeping/limits.ts";
import { ENDED_KEPT_DAYS } from "../../mail/limits.ts";
import type { SitePage } from "../answer.ts";

/** A sign-in at the console is over after two weeks, and swept a day later; at `/ops` sooner. */
const SIGN_IN_DAYS = 15;

/** What is kept of people, and how long: the numbers are those that the service goes by. */
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
    description: "What Roundhouse keeps of you, what for, and how long. No tracking, and cookies for signing in alone.",
    data: {
      operator,
      payloadHours,
      usageDays: USAGE_FACTS_KEPT_DAYS,
      mailDays: ENDED_KEPT_DAYS,
      signInDays: SIGN_IN_DAYS,
    },
  };
}
