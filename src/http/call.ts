import type { NextFunction, Request, Response } from "express";
import type { Allowance, Caller } from "../callers/caller-store.ts";
import type { ErrorCode } from "./errors.ts";
import type { Limits } from "./limit-headers.ts";
import type { Encoding } from "./etag.ts";

/** The response of an operation; `json` is made only if it is sent. */
export interface Content {
  etag: string;
  json(): string;
  /**
   * Since when newer rows are stored than this data shows, in milliseconds since 1970; absent or null if it is current.
   */
  behindSinceMs?: number | null;
}

/** The bytes of a response, and their content coding. */
export interface Body {
  bytes: Buffer;
  encoding: Encoding;
}

/**
 * What each middleware of a call stores in `response.locals` for the later ones; each comment names the one that sets
 * it.
 */
export interface Call {
  /** beginRequest */
  requestId: string;
  /** beginRequest, by `performance.now()` */
  begunAt: number;
  /** authenticate */
  caller: Caller;
  /** authenticate */
  plan: Allowance;
  /** limitRate; refuseExhausted and count add the quota. */
  limits: Limits;
  /** compose */
  content: Content;
  /** encode */
  body: Body;
  /** The error handler: the error that was returned. */
  refusal?: ErrorCode;
}

/** Middleware of a call; it may read what the earlier ones have set. */
export type CallHandler = (
  request: Request,
  response: Response & { locals: Call },
  next: NextFunction,
) => Promise<void> | void;
