import type { Express } from "express";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { sendJson } from "./request.ts";
import { resource } from "./resource.ts";
import { within } from "./within.ts";

const PATIENCE_MS = 2_000;
/** Whoever may ask without a key must not be able to make the servers busy. */
const BELIEVED_MS = 1_000;

/** One thing that is looked at; `required` where a process that lacks it must not get work. A throw counts as no. */
export interface Check {
  isGood: () => Promise<boolean>;
  required: boolean;
}

/** What `/readyz` looks at. */
export type Checks = Record<"postgres" | "redis" | "migrations" | "polling", Check>;

/** Adds `/healthz` (this process serves) and `/readyz` (it may be given work), for supervisors and load balancers. */
export function addHealth(
  app: Express,
  { version, checks, isDraining }: { version: string; checks: Checks; isDraining: () => boolean },
  log: Log,
): void {
  const findings = lookAgain(checks, log);
  resource(app, "/healthz", (_, response) => sendJson(response, 200, JSON.stringify({ ok: true, version })));
  resource(app, "/readyz", async (_, response) => {
    const found = await findings();
    const lacking = Object.entries(checks).some(([name, { required }]) => required && found[name] !== true);
    const ok = !lacking && !isDraining();
    sendJson(response, ok ? 200 : 503, JSON.stringify({ ok, checks: found }));
  });
}

function lookAgain(checks: Checks, log: Log): () => Promise<Record<string, boolean>> {
  const reasons = new Map<string, string>();
  let latest: Promise<Record<string, boolean>> | null = null;
  let lookedAt = -Infinity;

  async function look(name: string, check: Check): Promise<boolean> {
    try {
      const isGood = await within(PATIENCE_MS, name, check.isGood());
      reasons.delete(name);
      return isGood;
    } catch (error) {
      const reason = reasonOf(error);
      if (reasons.get(name) !== reason) log.warn(`the check of ${name} failed: ${reason}`);
      reasons.set(name, reason);
      return false;
    }
  }

  async function lookAtAll(): Promise<Record<string, boolean>> {
    const found = await Promise.all(
      Object.entries(checks).map(async ([name, check]) => [name, await look(name, check)] as const),
    );
    return Object.fromEntries(found);
  }

  return () => {
    const now = performance.now();
    if (latest === null || now - lookedAt > BELIEVED_MS) {
      lookedAt = now;
      latest = lookAtAll();
    }
    return latest;
  };
}
