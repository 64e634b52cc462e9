/** One kind of error: its status, its default message, its meaning, and whether a retry helps. */
interface Failure {
  status: number;
  message: string;
  means: string;
  retry: string;
}

const NO = "no, change the request";

/** Every error that a caller can receive: code → status → message. The page about errors is made from this table. */
export const FAILURES = {
  malformed_request: {
    status: 400,
    message: "this is not a valid HTTP request",
    means: "The bytes received are not HTTP/1.1, or a required part is missing.",
    retry: NO,
  },
  invalid_parameter: {
    status: 400,
    message: "a parameter has an invalid value",
    means:
      "A known parameter has a value that is not allowed, or was given twice. Values of a list are separated by commas.",
    retry: NO,
  },
  unknown_parameter: {
    status: 400,
    message: "this path does not have the parameter",
    means: "The path has no such parameter; `details.allowed` names those it has. Nothing is silently ignored.",
    retry: NO,
  },
  key_in_url: {
    status: 400,
    message:
      "a key was sent in the URL, which logs and proxies store; send it in the header X-Api-Key and replace it, because others may have seen it",
    means: "Keys belong in the header X-Api-Key. One that was in a URL should be replaced.",
    retry: NO,
  },
  missing_api_key: {
    status: 401,
    message: "expected a key in the header X-Api-Key, found none",
    means: "The request has no X-Api-Key header.",
    retry: "with a key",
  },
  invalid_api_key: {
    status: 401,
    message:
      "the key in X-Api-Key is unknown; check that all 46 characters were copied, and that the header was sent once",
    means: "The key is mistyped, cut off, sent twice, or was never issued.",
    retry: "with the right key",
  },
  expired_api_key: {
    status: 401,
    message: "this key has expired; use the one that replaced it",
    means: "The key's expiry time has passed.",
    retry: "with another key",
  },
  revoked_api_key: {
    status: 401,
    message: "this key was revoked; use another one",
    means: "The key was revoked by its holder or by the operator.",
    retry: "with another key",
  },
  no_active_plan: {
    status: 402,
    message: "the account of this key has no plan yet; buy one at /console/plans",
    means: "The account has no plan.",
    retry: "once there is a plan",
  },
  plan_expired: {
    status: 402,
    message: "the plan of this key's account has ended; renew it or buy another at /console/plans",
    means: "The account's plan has ended.",
    retry: "once there is a plan",
  },
  account_suspended: {
    status: 403,
    message: "the account of this key is suspended; the reason is shown at /console, and the operator can restore it",
    means: "The operator has suspended the account.",
    retry: "no, ask the operator",
  },
  email_not_verified: {
    status: 403,
    message:
      "the e-mail address of this key's account is not verified yet; open the link in the mail, or request another at /console/sign-up",
    means: "The account's e-mail address has not been verified.",
    retry: "once it is verified",
  },
  table_not_in_plan: {
    status: 403,
    message:
      "the plan of this key does not include this table; choose one that /api/v1/games lists, or a plan that includes it at /console/plans",
    means: "The house, game or market exists, and the plan of the key does not include it.",
    retry: "with another plan",
  },
  not_found: {
    status: 404,
    message: "this path does not exist",
    means: "The API has no such path.",
    retry: NO,
  },
  table_not_found: {
    status: 404,
    message: "there is no such table",
    means: "A filter names a house, game or market that does not exist.",
    retry: NO,
  },
  method_not_allowed: {
    status: 405,
    message: "this path accepts GET, HEAD and OPTIONS only",
    means: "The path exists and accepts only the methods in the header Allow.",
    retry: NO,
  },
  request_timeout: {
    status: 408,
    message: "the request did not arrive completely in time",
    means: "The request was started and not completed in time.",
    retry: "yes",
  },
  body_too_large: {
    status: 413,
    message: "the request body is larger than 16 KB; no path of the API needs one",
    means: "The body of the request is larger than 16 KB.",
    retry: NO,
  },
  url_too_long: {
    status: 414,
    message: "the URL is longer than 4,096 characters",
    means: "The URL is longer than any valid one.",
    retry: NO,
  },
  headers_too_large: {
    status: 431,
    message: "the headers of the request are larger than 16 KB",
    means: "All headers and the URL together are limited to 16 KB.",
    retry: NO,
  },
  rate_limited: {
    status: 429,
    message: "calls arrive faster than the plan allows; try again after the seconds in Retry-After",
    means:
      "More calls at the same time than the plan's burst, many wrong keys from one address (then a right key that was not used recently is refused too), or many calls with a key that is refused. It costs none of the quota.",
    retry: "yes, after Retry-After",
  },
  day_quota_exceeded: {
    status: 429,
    message: "the account has used all calls of this UTC day; the next one begins after the seconds in Retry-After",
    means: "The plan's calls of this UTC day are used up. `/api/v1/usage` still responds.",
    retry: "yes, after Retry-After",
  },
  month_quota_exceeded: {
    status: 429,
    message: "the account has used all calls of this UTC month; the next one begins after the seconds in Retry-After",
    means: "The plan's calls of this UTC month are used up. `/api/v1/usage` still responds.",
    retry: "yes, after Retry-After",
  },
  service_ceiling_reached: {
    status: 429,
    message:
      "the account has reached the ceiling that protects this service; try again after the seconds in Retry-After",
    means: "A plan without a daily number still has a technical ceiling. Ask the operator if you need more.",
    retry: "yes, after Retry-After",
  },
  internal_error: {
    status: 500,
    message: "an internal error occurred; if it persists, send the request_id to the operator",
    means: "An error of the service; the log has it under the `request_id`.",
    retry: "yes, after a while",
  },
  temporarily_unavailable: {
    status: 503,
    message: "the service cannot respond right now; try again after the seconds in Retry-After",
    means: "A component of the service is not available; the header Retry-After gives the time to the next attempt.",
    retry: "yes, after Retry-After",
  },
} as const satisfies Record<string, Failure>;

/** The stable name of an error. */
export type ErrorCode = keyof typeof FAILURES;

/** A request that ends with an error of {@link FAILURES}. */
export class ApiError extends Error {
  override name = "ApiError";
  readonly code: ErrorCode;
  readonly details: object | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ErrorCode,
    {
      message,
      details,
      headers = {},
      cause,
    }: ErrorOptions & {
      message?: string;
      details?: object;
      headers?: Record<string, string>;
    } = {},
  ) {
    super(message ?? FAILURES[code].message, { cause });
    this.code = code;
    this.details = details;
    this.headers = headers;
  }
}

/** The body of every error. `site` is the public address without a trailing slash. */
export function errorBody(error: ApiError, { site, requestId }: { site: string; requestId: string }): string {
  const { code, message, details } = error;
  const docs_url = `${site}/docs/errors#${code}`;
  return JSON.stringify({ ok: false, error: { code, message, docs_url, details }, request_id: requestId });
}
