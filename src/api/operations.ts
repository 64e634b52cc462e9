import type { IncomingMessage } from "node:http";
import type { Express } from "express";
import { accuracy } from "./accuracy.ts";
import { encodingFor, keepBodies } from "./bodies.ts";
import { deprecationHeaders } from "./deprecation.ts";
import { isNamed } from "./etag.ts";
import { forecasts } from "./forecasts.ts";
import { games } from "./games.ts";
import type { Gate } from "./gate.ts";
import type { LastUsed } from "./last-used.ts";
import { showLimits } from "./limit-headers.ts";
import type { Memory } from "./memory.ts";
import type { Metering } from "./metering.ts";
import type { Operation } from "./operation.ts";
import { readings } from "./readings.ts";
import { asked, sendBytes, type Reply } from "./request.ts";
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
    const isKnown = isNamed(request.headers["if-none-match"], answer.etag);
    // made before it is counted, so that a fault of ours costs nobody a call
    const body = isKnown ? null : await bodyOf(answer, encodingOf(request));
    if (body !== null) {
      const { refusal, quota } = await metering.count(passed, operation.endpoint);
      showLimits(response, plan, draw, quota);
      if (refusal !== null) throw refusal;
    }
    response.setHeader("ETag", answer.etag);
    response.setHeader("X-Data-Age", memory.ageSeconds());
    if (body?.encoding) response.setHeader("Content-Encoding", body.encoding);
    if (body === null) response.writeHead(304).end();
    else sendBytes(response, 200, body.bytes);
  };
}

/** HEAD says how long the answer is as it is. */
function encodingOf({ method, headers }: IncomingMessage) {
  return method === "HEAD" ? null : encodingFor(headers["accept-encoding"]);
}
