import type { Express } from "express";
import type { CallHandler } from "./call.ts";
import { ApiError } from "./errors.ts";
import { sendWhole } from "./request.ts";

const ALLOW = "GET, HEAD, OPTIONS";

const sendOptions: CallHandler = (_, response) => sendWhole(response, 204, ["Allow", ALLOW]);

/** Adds a read-only path: GET and HEAD run the handlers, OPTIONS is 204, any other method 405, both with Allow. */
export function resource(app: Express, path: string, ...handlers: CallHandler[]): void {
  app
    .route(path)
    .get(...handlers)
    .options(sendOptions)
    .all(() => {
      throw new ApiError("method_not_allowed", { headers: { Allow: ALLOW } });
    });
}
