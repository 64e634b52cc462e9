import type { SitePage } from "../answer.ts";

/** What a visitor gets who loads a page too often; `seconds` is when it can be loaded again. */
export function busyPage(seconds: number): SitePage {
  return {
    path: null,
    template: "busy/busy",
    title: "Too many requests",
    description: "This page was loaded too often from your address.",
    data: { seconds },
    status: 429,
  };
}
