import { traced } from "../telemetry.ts";
import type { Express, Request } from "express";
import { accuracy } from "./accuracy.ts";
import { keepBodies } from "./bodies.ts";
import { type Call, type CallHandler, type Content } from "../http/call.ts";
import { deprecationHeaders } from "./deprecation.ts";
import { encodedEtag, type Encoding, type EtagKey, keyedEtag, namedEtag } from "../http/etag.ts";
import { forecasts } from "./forecasts.ts";
import { games } from "./games.ts";
import type { LastUsed } from "./last-used.ts";
import { limitHeaders } from "../http/limit-headers.ts";
import type { Memory } from "../published/memory.ts";
import type { Counted, Metering } from "./metering.ts";
import type { Operation } from "./operation.ts";
import { readings } from "./readings.ts";
import { urlOf, JSON_TYPE, receiveWhole, sendWhole } from "../http/request.ts";
import { resource } from "../http/resource.ts";
import { rounds } from "./rounds.ts";

/** The operations that count against the quota. The routes and the documentation are made from this list. */
export const OPERATIONS: readonly Operation[] = [games, rounds, forecasts, readings, accuracy];

/** What the middleware of an operation needs. */
export interface OperationParts {
  memory: Memory;
  /** From requireCaller. */
  caller: CallHandler[];
  lastUsed: LastUsed;
  metering: Metering;
  etagKey: EtagKey;
}

/**
 * Adds an operation. An account without quota is refused before anything is made for it, and a call is counted last,
 * when its body is ready.
 */
export function addOperation(app: Express, operation: Operation, parts: OperationParts): void {
  const { memory, caller, lastUsed, metering, etagKey } = parts;
  const etagOf = keyEtags(etagKey);
  const { path, deprecated } = operation;
  if (deprecated !== undefined) app.all(path, announceEnd(new Map(Object.entries(deprecationHeaders(deprecated)))));
  resource(
    app,
    path,
    ...caller,
    refuseExhausted(metering, lastUsed),
    compose(operation, memory),
    sendUnchanged(memory, etagOf),
    encode,
    count(operation.endpoint, metering),
    send(memory, etagOf),
  );
}

function announceEnd(headers: Map<string, string>): CallHandler {
  return (_, response, next) => {
    response.setHeaders(headers);
    next();
  };
}

/**
 * Returns the ETag that callers see. It is a keyed hash: an unkeyed one of predictable JSON would let a caller verify
 * guesses of the contents without a counted call.
 */
function keyEtags(key: EtagKey): (content: Content) => string {
  const known = new WeakMap<Content, string>();
  return (content) => {
    const etag = known.get(content) ?? keyedEtag(key, content.etag);
    known.set(content, etag);
    return etag;
  };
}

/** Makes the response from memory. @throws ApiError 400, 403 or 404. */
function compose(operation: Operation, memory: Memory): CallHandler {
  return (request, response, next) => {
    const call = response.locals;
    call.content = operation.compose(urlOf(request).query, { memory, plan: call.plan });
    next();
  };
}

/** The age of the data, and the newest checkpoint of the public log. */
function dataHeaders(memory: Memory, { behindSinceMs }: Content): string[] {
  const behind = behindSinceMs == null ? 0 : Math.floor((memory.clock().nowMs - behindSinceMs) / 1_000);
  const headers = ["X-Data-Age", String(Math.max(memory.ageSeconds(), behind))];
  const checkpoint = memory.checkpoint();
  return checkpoint === null ? headers : [...headers, "X-Log-Checkpoint", checkpoint];
}

/** Sends 304 if the caller has the current version. It is free, and needs neither Redis nor PostgreSQL. */
function sendUnchanged(memory: Memory, etagOf: (content: Content) => string): CallHandler {
  return (request, response, next) => {
    const { content, limits } = response.locals;
    const { "if-none-match": given } = request.headers;
    const etag = given === undefined ? null : namedEtag(given, etagOf(content));
    if (etag === null) return next();
    sendWhole(response, 304, ["ETag", etag, ...dataHeaders(memory, content), ...limitHeaders(limits)]);
  };
}

/**
 * Refuses an account that is known to have used up its quota, without a query. Its key was used nevertheless. @throws
 * ApiError 429.
 */
function refuseExhausted(metering: Metering, lastUsed: LastUsed): CallHandler {
  return (_, response, next) => {
    const call = response.locals;
    lastUsed.note(call.caller.keyId);
    const exhausted = metering.exhausted(call.plan);
    if (exhausted !== null) admit(call, exhausted);
    next();
  };
}

const bodyOf = keepBodies();

/** Encodes the body before the call is counted, so that an error here costs the caller nothing. */
const encode: CallHandler = async (request, response, next) => {
  const call = response.locals;
  const made = bodyOf(call.content, encodingOf(request));
  call.body = made instanceof Promise ? await made : made;
  next();
};

/** HEAD returns the Content-Length of the uncompressed body. */
function encodingOf(request: Request): Encoding {
  if (request.method === "HEAD") return null;
  const accepted = request.acceptsEncodings("br", "gzip", "identity");
  return accepted === "br" || accepted === "gzip" ? accepted : null;
}

/**
 * Counts the call once its request is complete. The response is sent after the count is durable. @throws ApiError 401,
 * 402, 403, 429 or 503.
 */
function count(endpoint: string, metering: Metering): CallHandler {
  return async (request, response, next) => {
    const call = response.locals;
    if (!request.complete || request.destroyed) await receiveWhole(request);
    admit(call, await traced("meter.count", { endpoint }, () => metering.count(call, endpoint)));
    next();
  };
}

/** Adds the remaining quota to the headers, in errors too. */
function admit(call: Call, { refusal, quota }: Counted): void {
  call.limits = { ...call.limits, quota };
  if (refusal !== null) throw refusal;
}

/** Sends the response of a counted call. */
function send(memory: Memory, etagOf: (content: Content) => string): CallHandler {
  return (_, response) => {
    const { content, body, limits } = response.locals;
    const headers = ["ETag", encodedEtag(etagOf(content), body.encoding), ...dataHeaders(memory, content)];
    headers.push(...limitHeaders(limits), "Content-Type", JSON_TYPE, "Content-Length", String(body.bytes.length));
    if (body.encoding !== null) headers.push("Content-Encoding", body.encoding);
    sendWhole(response, 200, headers, body.bytes);
  };
}
