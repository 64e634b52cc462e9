import type { Anchor } from "../../forecasts/chain/anchors-store.ts";
import type { SitePage } from "../answer.ts";

/** How we measure, and how anybody checks it; without the newest roots where they could not be loaded. */
export function methodPage(newest: { roots: Anchor[]; total: number } | null): SitePage {
  return {
    path: "/method",
    template: "method/method",
    title: "How we measure, and how to check it",
    description:
      "How Roundhouse pre-registers forecasts, scores every one of them, chains them by hash, publishes a root each hour, and how anyone checks all of it. Also what cannot be proven.",
    data: { newest },
  };
}
