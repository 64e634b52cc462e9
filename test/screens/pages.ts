/** Public pages, by a name for their files. */
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
/** Public pages of a house that does not respond, and of a table without a forecast. */
export const FAULTY_SITE_PAGES: Readonly<Record<string, string>> = {
  "house-not-responding": "/houses/airport",
  "table-not-responding": "/houses/airport/rocket/classic",
  "house-without-rounds": "/houses/harbor",
  "table-without-rounds": "/houses/harbor/rocket/classic",
};
/** Pages of the console before sign-in. */
export const CONSOLE_DOORS: Readonly<Record<string, string>> = {
  "console-sign-in": "/console/sign-in",
  "console-sign-up": "/console/sign-up",
  "console-forgot": "/console/forgot",
};
/** Pages of the operators before sign-in. */
export const OPS_DOORS: Readonly<Record<string, string>> = { "ops-sign-in": "/ops/sign-in" };

/** Pages of a holder that are no entry of the lists: the one of their sign-in. */
export const CONSOLE_VIEWS: Readonly<Record<string, string>> = { "console-security": "/console/security" };

/** Pages of an account that has nothing yet. */
export const EMPTY_CONSOLE_PAGES: Readonly<Record<string, string>> = {
  "console-new": "/console",
  "console-new-keys": "/console/keys",
  "console-new-usage": "/console/usage",
  "console-new-requests": "/console/requests",
  "console-new-statement": "/console/statement",
  "console-new-purchases": "/console/purchases",
  "console-new-top-up": "/console/top-up",
  "console-missing": "/console/nothing-here",
};

/** Pages of operations that depend on a query or on one object; the others are found by their links. */
export const OPS_VIEWS: Readonly<Record<string, string>> = {
  "ops-house-open-circuit": "/ops/houses/airport",
  "ops-house-never-reached": "/ops/houses/harbor",
  "ops-house-pause": "/ops/houses/bustabit/act?do=pause",
  "ops-table-open-circuit": "/ops/tables/airport/rocket/classic",
  "ops-table-without-forecast": "/ops/tables/harbor/rocket/classic",
  "ops-queue-delayed": "/ops/queues/housekeep?state=delayed",
  "ops-queue-empty": "/ops/queues/send-mail?state=failed",
  "ops-queue-failed": "/ops/queues/backfill-gap?state=failed",
  "ops-queue-retry": "/ops/queues/backfill-gap/retry?state=failed&all=1",
  "ops-queue-discard": "/ops/queues/backfill-gap/discard?state=failed&all=1",
  "ops-queue-paused": "/ops/queues/remind-holders",
  "ops-queue-pause": "/ops/queues/housekeep/pause",
  "ops-queue-resume": "/ops/queues/remind-holders/resume",
  "ops-queue-promote": "/ops/queues/housekeep/promote?state=delayed&all=1",
  "ops-queue-discard-nothing": "/ops/queues/send-mail/discard?state=failed&all=1",
  "ops-queue-schedules-filtered": "/ops/queues/schedules?q=housekeep",
  "ops-search-house": "/ops/search?q=a",
  "ops-search-account": "/ops/search?q=example",
  "ops-search-nothing": "/ops/search?q=zzzz",
  "ops-quarantine-all": "/ops/quarantine?state=",
  "ops-conflicts-all": "/ops/conflicts?state=",
  "ops-gaps-all": "/ops/gaps?state=",
  "ops-gaps-empty": "/ops/gaps?of=harbor&state=",
  "ops-quarantine-empty": "/ops/quarantine?of=harbor",
  "ops-accuracy-detail": "/ops/accuracy/detail?of=bustabit/crash/global&feature=next_color&period=24h",
  "ops-missing": "/ops/nothing-here",
};

/** Pages of an account whose calls of the day are used up. */
export const EXHAUSTED_CONSOLE_PAGES: Readonly<Record<string, string>> = {
  "console-exhausted": "/console",
  "console-exhausted-usage": "/console/usage",
  "console-exhausted-requests": "/console/requests",
};
