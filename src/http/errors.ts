/** One kind of error: its status, its default message, its meaning, and whether a retry helps. */
interface Failure {
  status: number;
  says: string;
  means: string;
  retry: string;
}

const NO = "no, change the request";

/** Every error that a caller can get: code → status → message. The documentation page is made from this table. */
export const FAILURES = {
  malformed_request: {
    status: 400,
    says: "this is not an HTTP request that can be read",
    means: "The bytes that came are not HTTP/1.1, or a part that it requires is missing.",
    retry: NO,
  },
  invalid_parameter: {
    status: 400,
    says: "a parameter has a value that it cannot have",
    means: "A known parameter has a value outside of what it allows, or was given twice. Lists have commas between.",
    retry: NO,
  },
  unknown_parameter: {
    status: 400,
    says: "a parameter is not known here",
    means: "The path has no such parameter; `details.allowed` names those it has. Nothing is silently ignored.",
    retry: NO,
  },
  key_in_url: {
    status: 400,
    says: "a key was sent in the URL, where logs and proxies keep it; send it in the header X-Api-Key and replace it, since others may have seen it",
    means: "Keys belong in the header X-Api-Key. One that was in a URL should be replaced.",
    retry: NO,
  },
  missing_api_key: {
    status: 401,
    says: "expected a key in the header X-Api-Key, got none",
    means: "The request has no X-Api-Key header.",
    retry: "with a key",
  },
  invalid_api_key: {
    status: 401,
    says: "the key in X-Api-Key is not one of ours; check that all 46 characters were copied, and that the header was sent once",
    means: "The key is mistyped, cut off, sent twice, or was never made.",
    retry: "with the right key",
  },
  expired_api_key: {
    status: 401,
    says: "this key has expired; use the one that replaced it",
    means: "The key had an end, and it has passed.",
    retry: "with another key",
  },
  revoked_api_key: {
    status: 401,
    says: "this key was revoked; use another one",
    means: "The key was revoked by its holder or by the operator.",
    retry: "with another key",
  },
  no_active_plan: {
    status: 402,
    says: "the account of this key has no plan yet",
    means: "The account has no plan.",
    retry: "once there is a plan",
  },
  plan_expired: {
    status: 402,
    says: "the plan of this key's account has ended",
    means: "The account's plan has ended.",
    retry: "once there is a plan",
  },
  account_suspended: {
    status: 403,
    says: "the account of this key is suspended",
    means: "The operator has suspended the account.",
    retry: "no, ask the operator",
  },
  email_not_verified: {
    status: 403,
    says: "the e-mail address of this key's account is not verified yet",
    means: "The account's e-mail address has not been verified.",
    retry: "once it is verified",
  },
  table_not_in_plan: {
    status: 403,
    says: "what was asked for is not in the plan of this key",
    means: "The house, game or market exists, and the plan of the key does not include it.",
    retry: "with another plan",
  },
  not_found: {
    status: 404,
    says: "there is nothing at this path",
    means: "The path is not one of the API's.",
    retry: NO,
  },
  table_not_found: {
    status: 404,
    says: "there is no such table",
    means: "A filter names a house, game or market that does not exist.",
    retry: NO,
  },
  method_not_allowed: {
    status: 405,
    says: "this path takes GET, HEAD and OPTIONS",
    means: "The path exists and takes only the methods that the header Allow lists.",
    retry: NO,
  },
  request_timeout: {
    status: 408,
    says: "the request did not arrive in time",
    means: "The request was begun and its end did not come.",
    retry: "yes",
  },
  body_too_large: {
    status: 413,
    says: "no request here needs a body, and this one is larger than 16 KB",
    means: "The body of the request is larger than 16 KB.",
    retry: NO,
  },
  url_too_long: {
    status: 414,
    says: "the URL is longer than 4,096 characters",
    means: "The URL is longer than any valid one.",
    retry: NO,
  },
  headers_too_large: {
    status: 431,
    says: "the headers of the request are larger than 16 KB",
    means: "All headers and the URL together may have 16 KB.",
    retry: NO,
  },
  rate_limited: {
    status: 429,
    says: "calls come faster than the plan allows; go on after the seconds in Retry-After",
    means:
      "More calls at once than the plan's burst, or wrong keys again and again from one address. It costs none of the quota.",
    retry: "yes, after Retry-After",
  },
  day_quota_exceeded: {
    status: 429,
    says: "the account has used all calls of this UTC day; the next one begins after the seconds in Retry-After",
    means: "The plan's calls of this UTC day are used up. `/api/v1/usage` still answers.",
    retry: "yes, after Retry-After",
  },
  month_quota_exceeded: {
    status: 429,
    says: "the account has used all calls of this UTC month; the next one begins after the seconds in Retry-After",
    means: "The plan's calls of this UTC month are used up. `/api/v1/usage` still answers.",
    retry: "yes, after Retry-After",
  },
  service_ceiling_reached: {
    status: 429,
    says: "the account has reached the ceiling that protects this service; go on after the seconds in Retry-After",
    means: "A plan without a daily number still has a technical ceiling. Tell the operator if you need more.",
    retry: "yes, after Retry-After",
  },
  internal_error: {
    status: 500,
    says: "something went wrong here; if it stays so, tell the operator the request_id",
    means: "A fault of ours; it is in our log under the `request_id`.",
    retry: "yes, after a while",
  },
  temporarily_unavailable: {
    status: 503,
    says: "this cannot be answered right now; try again after the seconds in Retry-After",
    means: "A part that we need does not answer; the header Retry-After says when to try again.",
    retry: "yes, after Retry-After",
  },
} as const satisfies Record<string, Failure>;

/** The stable name of an error. */
export type ErrorCode = keyof typeof FAILURES;

/** A request that ends with an error of the table. */
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
    super(message ?? FAILURES[code].says, { cause });
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
