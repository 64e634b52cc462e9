import type { NextFunction, Request, Response } from "express";
import type { Allowance, Caller } from "../callers/caller-store.ts";
import type { ErrorCode } from "./errors.ts";
import type { Limits } from "./limit-headers.ts";
import type { Encoding } from "./etag.ts";

/** What an operation answers with: `json` is made only where it is sent. */
export interface Answer {
  etag: string;
  json(): string;
  /** Since when something newer is stored than it shows, in milliseconds since 1970; absent or null when nothing is. */
  behindSinceMs?: number | null;
}

/** The bytes of an answer, and their content coding. */
export interface Body {
  bytes: Buffer;
  encoding: Encoding;
}

/** What the middleware of a call leave in `response.locals` for those after them; the comment names who sets it. */
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
  answer: Answer;
  /** encode */
  body: Body;
  /** answerErrors: the error that was returned. */
  refusal?: ErrorCode;
}

/** Middleware of a call: it may read what those before it have set. */
export type CallHandler = (
  request: Request,
  response: Response & { locals: Call },
  next: NextFunction,
) => Promise<void> | void;
