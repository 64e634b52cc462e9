/**
 * Who may request what: the one table that the servers are held against (authorization.test.ts) and that
 * docs/authorization.md is made of. A route that is in no list of {@link ROUTES} fails the test.
 */

/** Everyone who can send a request, each with its own session or account. */
export const REQUESTERS = [
  "anonymous",
  "key",
  "exhausted key",
  "revoked key",
  "caller",
  "suspended caller",
  "caller, old sign-in",
  "person without account",
  "viewer",
  "operator",
  "data",
  "admin",
  "admin, old sign-in",
  "admin without second factor",
] as const;
export type Requester = (typeof REQUESTERS)[number];

/** What a response decides about a request, with what a client sees. */
export const OUTCOMES = {
  passes: "authorized: whatever follows, the request was not refused for who sent it",
  "sign in": "GET redirects to the sign-in page (302), anything else is 401",
  refused: "403",
  proof: "403 with a form that asks for the password and the code again",
  enroll: "GET redirects to the page of the own sign-in (303), anything else is 403 until a second factor is on",
  key: "401: no key, or one that is wrong, revoked or expired",
  quota: "429 with the exceeded quota",
  token: "401, a bearer token is required",
  signature: "400 or 401, a signature of the payment app is required",
} as const;
export type Outcome = keyof typeof OUTCOMES;

interface Rule {
  /** What the routes have in common. */
  about: string;
  outcomes: Readonly<Record<Requester, Outcome>>;
}

type Given = Partial<Record<Requester, Outcome>>;

/** A rule from the outcome of most requesters and those of the others. */
function rule(about: string, most: Outcome, others: Given = {}): Rule {
  const outcomes = Object.fromEntries(REQUESTERS.map((one) => [one, others[one] ?? most]));
  return { about, outcomes: outcomes as Rule["outcomes"] };
}

const all = (names: readonly Requester[], outcome: Outcome): Given =>
  Object.fromEntries(names.map((name) => [name, outcome]));
const CALLERS = ["caller", "suspended caller", "caller, old sign-in"] as const;
const STAFF = ["viewer", "operator", "data", "admin", "admin, old sign-in"] as const;
const SIGNED_IN = all(CALLERS, "passes");

/** An action of staff: who may, and whether an old sign-in has to be proved first. */
function action(about: string, roles: readonly Requester[], { isDangerous = false } = {}): Rule {
  const admins = ["admin", "admin, old sign-in"] as const;
  return rule(about, "sign in", {
    ...all(STAFF, "refused"),
    ...all([...roles, ...admins], "passes"),
    ...(isDangerous && { "admin, old sign-in": "proof" }),
    "admin without second factor": "enroll",
  });
}

/** The rules. Sessions of one surface mean nothing on another, and neither do keys. */
export const RULES = {
  public: rule("public: pages, files, the log, the document, health checks", "passes"),
  call: rule("calls of the API, which are counted", "key", { key: "passes", "exhausted key": "quota" }),
  usage: rule("the usage of one's own account, which costs nothing", "key", {
    ...all(["key", "exhausted key"], "passes"),
  }),
  metrics: rule("metrics, with `METRICS_TOKEN` set", "token"),
  notice: rule("notifications of the payment app", "signature"),
  "console sign-in": rule("sign-up, sign-in and what mails link to", "passes"),
  "console page": rule("pages of a caller's own account", "sign in", SIGNED_IN),
  "console own form": rule(
    "what callers may do while suspended: their sign-in, the terms, closing, revoking",
    "sign in",
    SIGNED_IN,
  ),
  "console action": rule("actions on a caller's own account", "sign in", {
    ...SIGNED_IN,
    "suspended caller": "refused",
  }),
  "console action, proved": rule(
    "actions that need a recent sign-in of callers with a second factor: new keys",
    "sign in",
    { ...SIGNED_IN, "suspended caller": "refused", "caller, old sign-in": "proof" },
  ),
  "ops sign-in": rule("the sign-in of staff", "passes"),
  "ops own": rule("one's own sign-in", "sign in", { ...all([...STAFF, "admin without second factor"], "passes") }),
  "ops page": rule("pages of staff", "sign in", {
    ...all(STAFF, "passes"),
    "admin without second factor": "enroll",
  }),
  "ops page of admins": rule("pages of admins", "sign in", {
    ...all(STAFF, "refused"),
    admin: "passes",
    "admin, old sign-in": "passes",
    "admin without second factor": "enroll",
  }),
  "operators act": action("actions of operators", ["operator"]),
  "operators act, proved": action("dangerous actions of operators", ["operator"], { isDangerous: true }),
  "data staff act": action("actions of data staff", ["data"]),
  "data staff act, proved": action("dangerous actions of data staff", ["data"], { isDangerous: true }),
  "admins act, proved": action("actions of admins", [], { isDangerous: true }),
} as const satisfies Record<string, Rule>;
export type RuleName = keyof typeof RULES;

/** Every route by its rule, as Express reads it. HEAD goes with GET unless it is listed. */
export const ROUTES: Readonly<Record<RuleName, readonly string[]>> = {
  public: [
    "GET /healthz",
    "GET /readyz",
    "GET /openapi.json",
    "GET /",
    "GET /houses",
    "GET /accuracy",
    "GET /method",
    "GET /plans",
    "GET /status",
    "GET /terms",
    "GET /privacy",
    "GET /responsible-gambling",
    "GET /docs",
    "GET /docs/errors",
    "GET /docs/changes",
    "GET /docs/quick-start",
    "GET /docs/guides/polling",
    "GET /docs/guides/verify",
    "GET /docs/guides/accuracy",
    "GET /houses/:house",
    "GET /houses/:house/:game/:market",
    "GET /status.atom",
    "GET /docs/changes.atom",
    "GET /log/checkpoint",
    "GET /log/key",
    "GET /log/tile/{*path}",
    "GET /log/export/:kind/:house/:game/:market",
    "GET /terms.txt",
    "GET /frame.css",
    "GET /frame.js",
    "GET /site.css",
    "GET /site.js",
    "GET /fonts/inter.woff2",
    "GET /fonts/jetbrains-mono.woff2",
    "GET /og.png",
    "GET /icon.svg",
    "GET /robots.txt",
    "GET /sitemap.xml",
  ],
  call: [
    "GET /api/v1/games",
    "GET /api/v1/rounds",
    "GET /api/v1/forecasts",
    "GET /api/v1/readings",
    "GET /api/v1/accuracy",
  ],
  usage: ["GET /api/v1/usage"],
  metrics: ["GET /metrics"],
  notice: ["POST /topups/binance-pay/notify"],
  "console sign-in": [
    "GET /console/sign-up",
    "POST /console/sign-up",
    "GET /console/sign-up/resend",
    "POST /console/sign-up/resend",
    "GET /console/confirm",
    "POST /console/confirm",
    "GET /console/sign-in",
    "POST /console/sign-in",
    "GET /console/sign-in/code",
    "POST /console/sign-in/code",
    "POST /console/sign-out",
    "GET /console/forgot",
    "POST /console/forgot",
    "GET /console/reset",
    "POST /console/reset",
    "GET /console/new-email",
    "POST /console/new-email",
    "GET /console/terms",
  ],
  "console page": [
    "GET /console/security",
    "GET /console",
    "GET /console/account",
    "GET /console/account/data.json",
    "GET /console/first-call",
    "GET /console/keys",
    "GET /console/plans",
    "GET /console/purchases",
    "GET /console/requests",
    "GET /console/statement",
    "GET /console/statement/statement.csv",
    "GET /console/top-up",
    "GET /console/top-up/bank",
    "GET /console/top-up/binance-pay",
    "GET /console/top-up/demo",
    "GET /console/top-up/usdt",
    "GET /console/usage",
    "GET /console/usage/usage.csv",
    "GET /console/plans/:plan/buy",
    "GET /console/purchases/:purchase",
    "GET /console/top-up/bank/:topup",
    "GET /console/top-up/binance-pay/:id",
  ],
  "console own form": [
    "GET /console/step-up",
    "POST /console/step-up",
    "POST /console/terms",
    "POST /console/security/sessions/end",
    "POST /console/security/sessions/end-others",
    "POST /console/security/password",
    "POST /console/security/two-factor/enable",
    "POST /console/security/two-factor/verify",
    "POST /console/security/two-factor/codes",
    "POST /console/security/two-factor/disable",
    "POST /console/security/email",
    "POST /console/account/close",
    "POST /console/keys/:key/revoke",
  ],
  "console action": [
    "POST /console/account/mails",
    "POST /console/first-call",
    "POST /console/top-up/bank",
    "POST /console/top-up/binance-pay",
    "POST /console/top-up/demo",
    "POST /console/plans/:plan/buy",
    "POST /console/top-up/bank/:topup/cancel",
  ],
  "console action, proved": ["POST /console/keys", "POST /console/keys/:key/rotate"],
  "ops sign-in": [
    "GET /ops/sign-in",
    "POST /ops/sign-in",
    "GET /ops/sign-in/code",
    "POST /ops/sign-in/code",
    "HEAD /ops/link",
    "GET /ops/link",
    "POST /ops/link/new",
    "POST /ops/sign-out",
  ],
  "ops own": [
    "GET /ops/me",
    "GET /ops/step-up",
    "POST /ops/step-up",
    "POST /ops/me/password",
    "POST /ops/me/sessions/end",
    "POST /ops/me/sessions/end-others",
    "POST /ops/me/two-factor/enable",
    "POST /ops/me/two-factor/verify",
    "POST /ops/me/two-factor/codes",
    "POST /ops/me/two-factor/disable",
  ],
  "ops page": [
    "GET /ops",
    "GET /ops/accuracy",
    "GET /ops/accuracy/detail",
    "GET /ops/accuracy/detail.csv",
    "GET /ops/accuracy/list.csv",
    "GET /ops/alerts",
    "GET /ops/audit",
    "GET /ops/audit/audit.csv",
    "GET /ops/bank",
    "GET /ops/bank/import",
    "GET /ops/bank/lines/new",
    "GET /ops/calibrations",
    "GET /ops/calibrations/compare",
    "GET /ops/calibrations/new",
    "GET /ops/calibrations/runs",
    "GET /ops/callers",
    "GET /ops/conflicts",
    "GET /ops/conflicts/decide",
    "GET /ops/conflicts/revise",
    "GET /ops/deposits",
    "GET /ops/deposits/addresses",
    "GET /ops/gaps",
    "GET /ops/ledger",
    "GET /ops/ledger/wallets",
    "GET /ops/mails",
    "GET /ops/notices",
    "GET /ops/payloads",
    "GET /ops/payloads/reread",
    "GET /ops/payment-app",
    "GET /ops/people",
    "GET /ops/plans",
    "GET /ops/quarantine",
    "GET /ops/queues",
    "GET /ops/queues/schedules",
    "GET /ops/queues/tasks",
    "GET /ops/search",
    "GET /ops/styleguide",
    "GET /ops/workers",
    "GET /ops/bank/imports/:id",
    "GET /ops/bank/lines/:id",
    "GET /ops/calibrations/:id",
    "GET /ops/calibrations/:id/promote",
    "GET /ops/calibrations/batches/:batch",
    "GET /ops/calibrations/runs/:run",
    "GET /ops/callers/:id",
    "GET /ops/conflicts/:id",
    "GET /ops/houses/:house",
    "GET /ops/houses/:house/act",
    "GET /ops/ledger/transactions/:id",
    "GET /ops/mails/:id",
    "GET /ops/people/:id",
    "GET /ops/plans/:plan",
    "GET /ops/plans/:plan/preview",
    "GET /ops/quarantine/:id",
    "GET /ops/top-ups/:id",
    "GET /ops/queues/:queue",
    "GET /ops/queues/:queue/discard",
    "GET /ops/queues/:queue/pause",
    "GET /ops/queues/:queue/promote",
    "GET /ops/queues/:queue/resume",
    "GET /ops/queues/:queue/retry",
    "GET /ops/queues/:queue/runs/:run",
    "GET /ops/payloads/:table/:at",
    "GET /ops/payloads/:table/:at/body",
    "GET /ops/tables/:house/:game/:market",
  ],
  "ops page of admins": ["GET /ops/settings"],
  "operators act": [
    "POST /ops/alerts/end-snooze",
    "POST /ops/alerts/snooze",
    "POST /ops/bank/import",
    "POST /ops/bank/lines/new",
    "POST /ops/conflicts/decide",
    "POST /ops/deposits/read-again",
    "POST /ops/mails/retry",
    "POST /ops/mails/retry-all",
    "POST /ops/notices/end",
    "POST /ops/notices/write",
    "POST /ops/payloads/reread",
    "POST /ops/quarantine/decide",
    "POST /ops/bank/imports/:id/import",
    "POST /ops/bank/lines/:id/hold",
    "POST /ops/bank/lines/:id/match",
    "POST /ops/bank/lines/:id/reject",
    "POST /ops/bank/lines/:id/return",
    "POST /ops/bank/lines/:id/return/stop",
    "POST /ops/bank/lines/:id/unmatch",
    "POST /ops/conflicts/:id/decide",
    "POST /ops/gaps/:id/close",
    "POST /ops/gaps/:id/open",
    "POST /ops/houses/:house/close",
    "POST /ops/houses/:house/pause",
    "POST /ops/houses/:house/probe",
    "POST /ops/houses/:house/resume",
    "POST /ops/ledger/proposals/:id/decline",
    "POST /ops/payment-app/:topup/ask",
    "POST /ops/queues/:queue/pause",
    "POST /ops/queues/:queue/promote",
    "POST /ops/queues/:queue/resume",
    "POST /ops/queues/:queue/retry",
    "POST /ops/tables/:house/:game/:market/reset-newest",
  ],
  "operators act, proved": [
    "POST /ops/conflicts/revise",
    "POST /ops/bank/lines/:id/approve",
    "POST /ops/bank/lines/:id/return/approve",
    "POST /ops/callers/:id/restore",
    "POST /ops/callers/:id/suspend",
    "POST /ops/ledger/proposals/:id/approve",
    "POST /ops/ledger/transactions/:id/reversal",
    "POST /ops/queues/:queue/discard",
    "POST /ops/callers/:id/keys/:key/revoke",
  ],
  "data staff act": [
    "POST /ops/calibrations/compare",
    "POST /ops/calibrations/new",
    "POST /ops/calibrations/runs/:run/cancel",
    "POST /ops/calibrations/runs/:run/labels",
    "POST /ops/calibrations/runs/:run/resume",
  ],
  "data staff act, proved": ["POST /ops/calibrations/:id/promote"],
  "admins act, proved": [
    "POST /ops/people",
    "POST /ops/callers/:id/reset-two-factor",
    "POST /ops/people/:id/disable",
    "POST /ops/people/:id/enable",
    "POST /ops/people/:id/end-sessions",
    "POST /ops/people/:id/reset-password",
    "POST /ops/people/:id/reset-two-factor",
    "POST /ops/people/:id/role",
    "POST /ops/plans/:plan",
  ],
};

/** The page of the documentation. */
export function authorizationPage(made: string): string {
  const names = Object.keys(RULES) as RuleName[];
  const rows = names.map((name) => {
    const { outcomes }: Rule = RULES[name];
    return `| ${name} | ${REQUESTERS.map((one) => outcomes[one]).join(" | ")} |`;
  });
  const routes = names.map((name) => {
    const listed = ROUTES[name].map((route) => `- \`${route}\`\n`).join("");
    return `### ${name}\n\n${capitalized(RULES[name].about)}.\n\n${listed}`;
  });
  return `${made}

# Authorization

For those who assess or change what a request may do. \`test/security/authorization.test.ts\` reads the routes from the routers of all
servers, sends each route as each requester, and compares the response with the table. A route that is in no list below fails the test,
and so does one that is listed and not served. The table is in \`test/security/authorization.ts\`.

| outcome | response |
| --- | --- |
${Object.entries(OUTCOMES)
  .map(([outcome, response]) => `| ${outcome} | ${response} |`)
  .join("\n")}

An object of another account has the response of one that does not exist. A method that a path does not take is 405 or 404, after the
sign-in where one is required. Forms of other sites are refused before any of this.

## Rules

| routes | ${REQUESTERS.join(" | ")} |
| --- | ${REQUESTERS.map(() => "---").join(" | ")} |
${rows.join("\n")}

An *old sign-in* is more than ten minutes old and of a person with a second factor. *Without second factor* is with
\`OPS_REQUIRE_TWO_FACTOR=1\`. Staff see every page but the settings, which are for admins; who approves money is in [operators](operators.md).

## Routes

${routes.join("\n")}`;
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
