import type { Express, Request, Response } from "express";
import { ApiError } from "./errors.ts";
import type { Reply } from "./request.ts";

const ALLOW = "GET, HEAD, OPTIONS";

/** Adds a path that can be read: GET and HEAD are answered, OPTIONS says so, anything else is refused before it is looked at. */
export function resource(
  app: Express,
  path: string,
  answer: (request: Request, response: Response & Reply) => Promise<void> | void,
): void {
  app
    .route(path)
    .get(answer)
    .options((_, response) => {
      response.setHeader("Allow", ALLOW);
      response.status(204).end();
    })
    .all(() => {
      throw new ApiError("method_not_allowed", { headers: { Allow: ALLOW } });
    });
}
