import { FAILURES } from "../../http/errors.ts";
import type { SitePage } from "../answer.ts";
import { prose } from "../prose.ts";
import { sidebar } from "./sidebar.ts";

/** Every error a caller can get, under the address that the error itself names as its `docs_url`. */
export function errorsPage(): SitePage {
  return {
    path: "/docs/errors",
    template: "docs/errors",
    kind: "docs",
    sidebar,
    title: "Errors",
    description:
      "Every error that Roundhouse's API can answer with: its code, status, meaning, and whether to try again.",
    data: { failures: errorRows() },
  };
}

/** Every error a caller can get, in the order of the table of errors. */
export function errorRows() {
  return Object.entries(FAILURES).map(([code, { status, means, retry }]) => ({
    code,
    status,
    means: prose(means),
    retry,
  }));
}
