/** Pages that are looked at, by a name for their files; `:x` parts are filled in from links on the pages before. */
export const SITE_PAGES: Readonly<Record<string, string>> = {
  home: "/",
  houses: "/houses",
  house: "/houses/bustabit",
  table: "/houses/bustabit/crash/global",
  accuracy: "/accuracy",
  "accuracy-table": "/accuracy?of=bustabit/crash/global",
  method: "/method",
  plans: "/plans",
  status: "/status",
  docs: "/docs",
  "docs-quick-start": "/docs/quick-start",
  "docs-polling": "/docs/guides/polling",
  "docs-verify": "/docs/guides/verify",
  "docs-accuracy": "/docs/guides/accuracy",
  "docs-errors": "/docs/errors",
  "docs-changes": "/docs/changes",
  terms: "/terms",
  privacy: "/privacy",
  gambling: "/responsible-gambling",
  missing: "/nothing-here",
};
/** Pages of the console before sign-in. */
export const CONSOLE_DOORS: Readonly<Record<string, string>> = {
  "console-sign-in": "/console/sign-in",
  "console-sign-up": "/console/sign-up",
  "console-forgot": "/console/forgot",
};
/** Pages of the operators before sign-in. */
export const OPS_DOORS: Readonly<Record<string, string>> = { "ops-sign-in": "/ops/sign-in" };
