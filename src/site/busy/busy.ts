import type { SitePage } from "../send-page.ts";

/** The page for a visitor who exceeds the rate limit; it can be loaded again after `seconds`. */
export function busyPage(seconds: number): SitePage {
  return {
    path: null,
    template: "busy/busy",
    title: "Too many requests",
    description: "This page was loaded too often from your address.",
    data: { seconds },
    status: 429,
    retryAfterSeconds: seconds,
  };
}

/** The page in place of one whose subject could not be looked up in time. */
export function slowPage(): SitePage {
  const seconds = 5;
  return {
    path: null,
    template: "busy/slow",
    title: "Temporarily unavailable",
    description: "This page could not be loaded.",
    data: { seconds },
    status: 503,
    retryAfterSeconds: seconds,
  };
}
