import type { Express } from "express";
import { accuracy } from "./accuracy.ts";
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
import { queryOf, sendJson } from "./request.ts";
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

/** Adds an operation. The order of a request: cheap refusals first, and what it costs the caller last. */
export function addOperation(
  app: Express,
  operation: Operation,
  { memory, gate, lastUsed, metering }: OperationParts,
): void {
  const { path, endpoint, deprecated } = operation;
  if (deprecated !== undefined) {
    const headers = new Map(Object.entries(deprecationHeaders(deprecated)));
    app.all(path, (_, response, next) => {
      response.setHeaders(headers);
      next();
    });
  }
  resource(app, path, async (request, response) => {
    const passed = await gate(request, response);
    const { caller, plan, draw } = passed;
    const answer = operation.answer(queryOf(request.url), { memory, plan });
    lastUsed.note(caller.keyId);
    const isKnown = isNamed(request.headers["if-none-match"], answer.etag);
    // made before it is counted, so that a fault of ours costs nobody a call
    const json = isKnown ? "" : answer.json();
    if (!isKnown) {
      const { refusal, quota } = await metering.count(passed, endpoint);
      showLimits(response, plan, draw, quota);
      if (refusal !== null) throw refusal;
    }
    response.setHeader("ETag", answer.etag);
    response.setHeader("X-Data-Age", memory.ageSeconds());
    if (isKnown) response.status(304).end();
    else sendJson(response, 200, json);
  });
}
