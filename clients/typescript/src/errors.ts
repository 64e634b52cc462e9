import type { Checkpoint } from "./checkpoint.ts";

/** The body of every error of the API. */
export interface ErrorBody {
  error: { code: string; message: string; docs_url: string; details?: Record<string, unknown> | undefined };
  request_id: string;
}

/** Any failure of a call: the API refused it, or there was no usable response. */
export class RoundhouseError extends Error {
  override name = "RoundhouseError";
}

/** No whole response of the API: no connection, a broken one, a timeout, or a proxy's error page. Try again later. */
export class ConnectionError extends RoundhouseError {
  override name = "ConnectionError";
}

/** The API refused the call. `code` is stable: go by it, never by the message. */
export class ApiError extends RoundhouseError {
  override name = "ApiError";
  readonly status: number;
  readonly code: string;
  /** Address of the explanation of the code. */
  readonly docsUrl: string;
  /** For the operator, who can find the call in the log by it. */
  readonly requestId: string;
  /** What the error is about, if there is more to report: the parameter, the names that are allowed. */
  readonly details: Record<string, unknown>;

  constructor(status: number, { error, request_id }: ErrorBody) {
    super(`${error.code}: ${error.message}`);
    this.status = status;
    this.code = error.code;
    this.docsUrl = error.docs_url;
    this.details = error.details ?? {};
    this.requestId = request_id;
  }
}

/** 400, 414 and their like: a parameter is wrong. The same call fails again. */
export class InvalidRequestError extends ApiError {
  override name = "InvalidRequestError";
}

/** 401: the key is missing, unknown, expired or revoked. */
export class AuthenticationError extends ApiError {
  override name = "AuthenticationError";
}

/** 402 and 403: the account has no plan, is suspended, or its plan does not include the table. */
export class AccessError extends ApiError {
  override name = "AccessError";
}

/** 404: there is no such table or path. */
export class NotFoundError extends ApiError {
  override name = "NotFoundError";
}

/** 429: too fast, or the quota is used up. */
export class RateLimitError extends ApiError {
  override name = "RateLimitError";
  /** Seconds after which a call can succeed; null if the response does not state it. */
  readonly retryAfterSeconds: number | null;

  constructor(status: number, body: ErrorBody, retryAfterSeconds: number | null) {
    super(status, body);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** 5xx: the service cannot respond now. */
export class UnavailableError extends ApiError {
  override name = "UnavailableError";
}

/**
 * The public log contradicts a checkpoint that this client holds, lacks entries of one that is old, or the kept key did
 * not sign it: keep both checkpoints and publish them.
 */
export class InconsistentLogError extends RoundhouseError {
  override name = "InconsistentLogError";
}

/**
 * The process that responded serves an older log than another one showed, or lacks a part of it, such as while its
 * replica is behind: try again.
 */
export class StaleLogError extends RoundhouseError {
  override name = "StaleLogError";
}

/**
 * Operators declared another public log, as after a restore. Its first entry names the last checkpoint of the log before,
 * with at least everything that this client saw; whether it is right can no longer be checked, since the tiles of that log
 * are gone. Keep both checkpoints, read the reason, and begin with a new client, without `checkpoint` and with the new
 * text of `/log/key`.
 */
export class DeclaredLogError extends RoundhouseError {
  override name = "DeclaredLogError";
  readonly reason: string;
  /** Of the log before, as the new one names it. */
  readonly previous: Checkpoint;
  /** Of the new log. */
  readonly newest: Checkpoint;

  constructor(reason: string, { previous, newest }: { previous: Checkpoint; newest: Checkpoint }) {
    super(
      `another public log was declared: ${reason}. It names checkpoint ${previous.size} ${previous.root} of the log before; ` +
        `its own is ${newest.size} ${newest.root}. Begin with a new client, without a checkpoint`,
    );
    this.reason = reason;
    this.previous = previous;
    this.newest = newest;
  }
}

/** The error of a response with this status and body. */
export function apiErrorOf(status: number, body: ErrorBody, retryAfterSeconds: number | null): ApiError {
  if (status === 401) return new AuthenticationError(status, body);
  if (status === 402 || status === 403) return new AccessError(status, body);
  if (status === 404) return new NotFoundError(status, body);
  if (status === 429) return new RateLimitError(status, body, retryAfterSeconds);
  if (status >= 500) return new UnavailableError(status, body);
  return new InvalidRequestError(status, body);
}
