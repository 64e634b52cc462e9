import { z } from "zod";
import { json, type DemoResponse } from "../response.ts";
import { type PublishedRound, type WireFormat } from "./wire.ts";

/** Clients ask for 10 to 50. */
const LONGEST_PAGE = 50;

const question = z.object({
  operationName: z.string().optional(),
  query: z.string(),
  variables: z.record(z.string(), z.unknown()).optional(),
});
const listVariables = z.object({
  limit: z.int().min(1).max(LONGEST_PAGE).default(10),
  offset: z.int().min(0).default(0),
});
const gameVariables = z.object({ gameId: z.string() });

/** Stake crash over GraphQL: a POST with a query, and errors in a list under status 200. */
export const asStake: WireFormat = {
  name: "stake",
  palette: "stake",
  usualMs: 24_000,
  serves: [`POST /_api/graphql   crashGameList(limit, offset), at most ${LONGEST_PAGE}, and crashGame(gameId)`],
  respond({ method, url, headers, body }, published) {
    if (url.pathname !== "/_api/graphql") return null;
    if (method !== "POST") return json({ errors: [{ message: "GET query missing." }] }, 400);
    if (!/^application\/json\b/i.test(headers["content-type"] ?? "")) {
      return json({ errors: [{ message: "POST body missing, or its content-type is not application/json." }] }, 400);
    }
    const asked = question.safeParse(parsed(body));
    if (!asked.success) return json({ errors: [{ message: "Must provide query string." }] }, 400);
    const { query, variables = {} } = asked.data;
    if (/\bcrashGameList\s*\(/.test(query)) {
      const page = listVariables.safeParse(variables);
      if (!page.success) return failed("crashGameList", "invalid limit or offset");
      const { limit, offset } = page.data;
      return json({ data: { crashGameList: published.newest(limit, offset).map(gameOf) } });
    }
    if (/\bcrashGame\s*\(/.test(query)) {
      const game = gameVariables.safeParse(variables);
      const round = game.success ? published.find(game.data.gameId) : null;
      return round === null ? failed("crashGame", "game not found") : json({ data: { crashGame: gameOf(round) } });
    }
    return json({ errors: [{ message: "Cannot query that field." }] }, 400);
  },
};

function failed(path: string, message: string): DemoResponse {
  return json({ errors: [{ path: [path], message, errorType: "invalidRequest" }], data: null });
}

function gameOf({ id, at, multiplier, hash }: PublishedRound) {
  return {
    id,
    startTime: at.toUTCString(),
    crashpoint: multiplier === null ? null : Math.max(Number(multiplier), 1),
    hash: hash === null ? null : { id, hash },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // refused by its shape, as any other body that is no question
  }
}
