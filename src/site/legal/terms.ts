import { legalText, paragraphsOf } from "../../accounts/legal.ts";
import type { SitePage } from "../send-page.ts";

/** The page of the terms, with their version and hash, and the operator. */
export function termsPage(operator: string | undefined): SitePage {
  const { version, text, sha256 } = legalText("terms");
  return {
    path: "/terms",
    template: "legal/terms",
    kind: "reading",
    title: "Terms",
    description:
      "The terms of Roundhouse, as they are agreed to at sign-up: no resale of the raw feed, own products allowed.",
    data: { operator, version, sha256, paragraphs: paragraphsOf(text) },
  };
}
