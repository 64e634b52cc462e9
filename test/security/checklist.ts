/** What has to be shown: a control, the id that titles of its tests carry in brackets, and where they are. */
export interface Control {
  id: string;
  control: string;
  shownIn: readonly string[];
}

/**
 * Our security checklist: the ten risks of OWASP's API Security Top 10 (2023), what they leave out, and the chapters of
 * OWASP's ASVS 5.0 at level 2 for the console and for money.
 */
export const CHECKLIST: readonly Control[] = [
  {
    id: "API1",
    control: "an id of another account is treated as one that does not exist: every route and field, two accounts",
    shownIn: ["console/frame", "security/authorization"],
  },
  {
    id: "API2",
    control: "keys by hash, refused within a call of being revoked; few tries with wrong keys and passwords",
    shownIn: ["api/limits", "api/killed", "console/sign-in", "ops/sign-in"],
  },
  {
    id: "API3",
    control: "responses have their documented fields and no others; forms change what they are for and nothing else",
    shownIn: ["api/games", "api/openapi", "security/people"],
  },
  {
    id: "API4",
    control: "bursts, sizes, times and connections have limits, and one caller's flood is not another's outage",
    shownIn: ["console/sign-in", "api/limits", "api/fuzz", "api/requests", "accounts/identity", "security/floods"],
  },
  {
    id: "API5",
    control: "operators' actions want an operator's sign-in, role and, where they are dangerous, a fresh proof",
    shownIn: ["ops/frame", "console/sign-in", "security/authorization"],
  },
  {
    id: "API6",
    control: "buying twice buys once; sign-ups and mails have limits",
    shownIn: ["purchases/purchases", "console/sign-up"],
  },
  {
    id: "API7",
    control: "houses are requested at public addresses alone, whatever names, redirects and responses contain",
    shownIn: ["houses/polling/guard", "houses/polling/http", "security/ssrf"],
  },
  {
    id: "API8",
    control: "headers on every page, faults without their insides, no request that two readers read differently",
    shownIn: ["api/requests", "ops/frame", "console/frame", "security/floods"],
  },
  {
    id: "API9",
    control: "the document has every route, and what is only announced is not there",
    shownIn: ["api/openapi", "api/conformance"],
  },
  {
    id: "API10",
    control: "responses of houses and of the payment app are bounded and read by schemas",
    shownIn: ["houses/polling/http", "houses/adapters/json", "houses/adapters/named", "topups/binance-pay"],
  },
  { id: "LOGS", control: "no secret in any line of a log", shownIn: ["log", "api/keys", "security/logs"] },
  {
    id: "ETAG",
    control: "an ETag shows nothing of contents that were not paid for",
    shownIn: ["http/etag"],
  },
  {
    id: "COUNTED",
    control: "each counted call gets its response, and a request that is never complete is not counted",
    shownIn: ["api/counting"],
  },
  {
    id: "LIVE",
    control: "without a key rounds are seen late, and a page with them is not loaded in a loop",
    shownIn: ["site/pages"],
  },
  {
    id: "TEXTS",
    control:
      "every text that a house, a chain endpoint or the payment app controls is cut where it enters, and by its column",
    shownIn: ["security/hostile-house", "topups/usdt", "topups/binance-pay", "topups/rpc-response"],
  },
  {
    id: "NUMBERS",
    control: "no number from outside reaches SQL that its column cannot hold",
    shownIn: ["security/hostile-house", "topups/usdt", "topups/binance-pay"],
  },
  {
    id: "PARSERS",
    control:
      "responses of houses and chain endpoints are read in linear time, within bounds, and outside the event loop when they are large",
    shownIn: ["rounds/read-body", "topups/rpc-response", "fuzz/worst"],
  },
  {
    id: "FORMULAS",
    control: "an export holds no formula that a house sent, unless it is asked for raw",
    shownIn: ["cli/export-formulas"],
  },
  {
    id: "FUZZ",
    control:
      "parsers of outside text are fed with texts that are nearly valid: briefly in CI, longer by `npm run fuzz`",
    shownIn: ["fuzz/fuzz"],
  },
  { id: "KEY-IN-URL", control: "a key in a URL is refused with advice and kept nowhere", shownIn: ["api/keys"] },
  {
    id: "WEBHOOK",
    control: "notices of the payment app: signature, age, nonce, and then the order itself is asked for",
    shownIn: ["topups/binance-pay"],
  },
  {
    id: "SUPPLY",
    control: "exact versions, hashes, no install scripts, an audit where it is checked",
    shownIn: ["security/supply", "security/audit"],
  },
  {
    id: "SUPERUSER",
    control: "the private PostgreSQL never runs as root, and its login may neither act as superuser nor make roles",
    shownIn: ["cli/up", "embedded/server-user"],
  },
  {
    id: "DATABASE-ROLES",
    control: "one part's login of the database opens that part alone; money moves with its document",
    shownIn: ["security/database-roles", "console/sign-in"],
  },
  {
    id: "FOUR-EYES",
    control:
      "an operator who is new or was reset approves nothing for a day, never the work of who did it, and the other way round",
    shownIn: ["topups/bank", "security/four-eyes"],
  },
  {
    id: "LOCKOUT",
    control:
      "wrong passwords from elsewhere do not lock out a device that is known; locks grow; guessed codes are mailed to the holder",
    shownIn: ["security/lockout"],
  },
  { id: "ROTATION", control: "secrets can be changed, and what ends with them does", shownIn: ["security/people"] },
  {
    id: "V2",
    control: "ASVS V2, validation and business logic: orders once, a transfer seen by two",
    shownIn: ["purchases/purchases", "topups/bank"],
  },
  {
    id: "V4",
    control: "ASVS V4, API and web service: each request gets a documented response",
    shownIn: ["api/fuzz"],
  },
  {
    id: "V6",
    control: "ASVS V6, authentication: argon2id, common passwords, few tries, second factors, resets",
    shownIn: ["accounts/identity", "console/sign-in", "console/security", "ops/sign-in"],
  },
  {
    id: "V7",
    control: "ASVS V7, sessions: they end in time, manually, and with a password; fresh proof for dangerous actions",
    shownIn: ["console/sign-in", "console/security", "ops/sign-in", "ops/frame"],
  },
  {
    id: "V8",
    control: "ASVS V8, authorization: by account and by role, on every route there is",
    shownIn: ["console/frame", "ops/frame", "security/authorization"],
  },
  {
    id: "V13",
    control: "ASVS V13, configuration: headers, metrics closed, private servers with passwords",
    shownIn: ["api/requests", "metrics/access", "embedded/servers"],
  },
  {
    id: "V14",
    control: "ASVS V14, data protection: tokens and passwords are not kept, closed accounts name no one",
    shownIn: ["console/sign-up", "console/security"],
  },
  {
    id: "V16",
    control: "ASVS V16, logging and errors: no secrets, an audit log that shows a change, faults without words",
    shownIn: ["log", "audit/audit", "api/requests"],
  },
];
