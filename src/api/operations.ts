import type { IncomingMessage } from "node:http";
import type { Express } from "express";
import { accuracy } from "./accuracy.ts";
import { keepBodies, type Body } from "./bodies.ts";
import { deprecationHeaders } from "./deprecation.ts";
import { encodingFor } from "./encoding.ts";
import { encodedEtag, namedEtag } from "./etag.ts";
import { forecasts } from "./forecasts.ts";
import { games } from "./games.ts";
import type { Gate } from "./gate.ts";
import type { LastUsed } from "./last-used.ts";
import { limitHeaders } from "./limit-headers.ts";
import type { Memory } from "./memory.ts";
import type { Counted, Metering } from "./metering.ts";
import type { Operation } from "./operation.ts";
import { readings } from "./readings.ts";
import { EVERY_ANSWER } from "./protection.ts";
import { asked, JSON_TYPE, type Reply } from "./request.ts";
import { resource } from "./resource.ts";
import { rounds } from "./rounds.ts";

/** All that callers can ask for at the cost of a call. The routes and the documentation are made from this list. */
export const OPERATIONS: readonly Operation[] = [games, rounds, forecasts, readings, accuracy];

/** What an answer takes beside the request. */
export interface OperationParts {
  memory: Memory;
  gate: Gate;
  lastUsed: LastUsed;
  metering: Metering;
}

/** Answers a request for an operation. */
export type Answering = (request: IncomingMessage, response: Reply) => Promise<void>;

/** Adds an operation, and gives back what answers it, for those who need not go through the app. */
export function addOperation(app: Express, operation: Operation, parts: OperationParts): Answering {
  const { path, deprecated } = operation;
  const answer = answering(operation, parts);
  if (deprecated === undefined) {
    resource(app, path, answer);
    return answer;
  }
  const headers = new Map(Object.entries(deprecationHeaders(deprecated)));
  // what is refused or asked of the path itself says so too
  app.all(path, (_, response, next) => {
    response.setHeaders(headers);
    next();
  });
  resource(app, path, answer);
  return (request, response) => {
    response.setHeaders(headers);
    return answer(request, response);
  };
}

const bodyOf = keepBodies();

/** The order of a request: cheap refusals first, and what it costs the caller last. */
function answering(operation: Operation, { memory, gate, lastUsed, metering }: OperationParts): Answering {
  return async (request, response) => {
    const passed = await gate(request, response);
    const { caller, plan, draw } = passed;
    const answer = operation.answer(asked(request).query, { memory, plan });
    lastUsed.note(caller.keyId);
    const known = namedEtag(request.headers["if-none-match"], answer.etag);
    if (known !== null) return send(response, { etag: known, age: memory.ageSeconds(), body: null });
    const refuse = ({ refusal, quota }: Counted) => {
      response.locals.limits = { plan, draw, quota };
      if (refusal !== null) throw refusal;
    };
    const exhausted = metering.exhausted(plan);
    if (exhausted !== null) return refuse(exhausted);
    // made before it is counted, so that a fault of ours costs nobody a call
    const made = bodyOf(answer, encodingOf(request));
    const body = made instanceof Promise ? await made : made;
    refuse(await metering.count(passed, operation.endpoint));
    send(response, { etag: encodedEtag(answer.etag, body.encoding), age: memory.ageSeconds(), body });
  };
}

/** Writes an answer with all of its headers at once: set one by one, they took a tenth of the time of a call. */
function send(response: Reply, { etag, age, body }: { etag: string; age: number; body: Body | null }): void {
  const { requestId, limits } = response.locals;
  const headers = ["X-Request-Id", requestId, ...EVERY_ANSWER, "ETag", etag, "X-Data-Age", String(age)];
  if (limits !== undefined) headers.push(...limitHeaders(limits));
  if (body === null) {
    response.writeHead(304, headers).end();
    return;
  }
  headers.push("Content-Type", JSON_TYPE, "Content-Length", String(body.bytes.length));
  if (body.encoding !== null) headers.push("Content-Encoding", body.encoding);
  response.writeHead(200, headers).end(body.bytes);
}

/** HEAD says how long the answer is as it is. */
function encodingOf({ method, headers }: IncomingMessage) {
  return method === "HEAD" ? null : encodingFor(headers["accept-encoding"]);
}
