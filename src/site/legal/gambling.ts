import type { SitePage } from "../send-page.ts";
import type { HelplineBlock } from "./helplines.ts";

/** The page about getting help, and about what these numbers can and cannot do. */
export function gamblingPage(helplines: readonly HelplineBlock[]): SitePage {
  return {
    path: "/responsible-gambling",
    template: "legal/gambling",
    kind: "reading",
    title: "Responsible gambling",
    description:
      "Where to find help with gambling, free and confidential, and what probabilities cannot do for anyone.",
    data: { helplines },
  };
}
