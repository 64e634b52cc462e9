import { FAILURES } from "../../http/errors.ts";
import type { SitePage } from "../send-page.ts";
import { prose } from "../../frame/text/prose.ts";
import { sidebar } from "./sidebar.ts";

/** The page of all API errors, at the address in each error's `docs_url`. */
export function errorsPage(): SitePage {
  return {
    path: "/docs/errors",
    template: "docs/errors",
    kind: "docs",
    sidebar,
    title: "Errors",
    description: "Every error that Roundhouse's API can return: its code, status, meaning, and whether to try again.",
    data: { failures: errorRows() },
  };
}

/** All API errors, in the order of their table. */
export function errorRows() {
  return Object.entries(FAILURES).map(([code, { status, means, retry }]) => ({
    code,
    status,
    means: prose(means),
    retry,
  }));
}
