import type { Express } from "express";
import type { LastUsed } from "../api/last-used.ts";
import { composeUsage, USAGE_PATH, USAGE_READS } from "../api/usage.ts";
import type { Sql } from "../db/client.ts";
import { boundReads } from "../db/reads.ts";
import type { CallHandler } from "../http/call.ts";
import { clientGone } from "../http/client-gone.ts";
import { limitHeaders } from "../http/limit-headers.ts";
import { setPairs } from "../http/protection.ts";
import { sendJson, urlOf } from "../http/request.ts";
import { resource } from "../http/resource.ts";

/** Adds the path that a caller's use is read at, for callers that `caller` lets through. */
export function addUsage(
  app: Express,
  { sql, caller, lastUsed, usageMs }: { sql: Sql; caller: CallHandler[]; lastUsed: LastUsed; usageMs: number },
): void {
  const reads = boundReads(sql, USAGE_READS);
  resource(app, USAGE_PATH, ...caller, async (request, response) => {
    const call = response.locals;
    const { json, quota } = await composeUsage(reads, call, urlOf(request).query, {
      gone: clientGone(response),
      usageMs,
    });
    lastUsed.note(call.caller.keyId);
    setPairs(response, limitHeaders({ ...call.limits, quota }));
    sendJson(response, 200, json);
  });
}
