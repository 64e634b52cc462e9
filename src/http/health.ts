import type { Express } from "express";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { sendJson } from "./request.ts";
import { resource } from "./resource.ts";
import { within } from "../within.ts";

/** A check that takes longer has failed: a database that does not respond must not delay the response. */
const TIMEOUT_MS = 2_000;
/** Results are cached this long: callers without a key must not be able to load the servers. */
const CACHED_MS = 1_000;
/** Pending checks of one kind: a database that does not respond must not occupy ever more connections. */
const PENDING = 5;

/** One check. A process whose `required` check fails must not get work. An exception counts as false. */
export interface Check {
  isGood: () => Promise<boolean>;
  required: boolean;
}

/** Thrown by a check: the message is public, `detail` is only logged. */
export class NotReady extends Error {
  override name = "NotReady";
  readonly detail: string;

  constructor(message: string, detail = "") {
    super(message);
    this.detail = detail;
  }
}

/** The checks of `/readyz`. */
export type Checks = Record<"postgres" | "redis" | "migrations" | "polling", Check>;

/** The results of the checks, and the details of a failure. */
interface Findings {
  checks: Record<string, boolean>;
  problems: Record<string, string>;
}

/** Adds `/healthz` (this process serves) and `/readyz` (it may be given work), for supervisors and load balancers. */
export function addHealth(
  app: Express,
  { version, checks, isDraining }: { version: string; checks: Checks; isDraining: () => boolean },
  log: Log,
  nowMs = () => performance.now(),
): void {
  const findings = runChecks(checks, log, nowMs);
  resource(app, "/healthz", (_, response) => {
    response.setHeader("Cache-Control", "no-store");
    sendJson(response, 200, JSON.stringify({ ok: true, version }));
  });
  resource(app, "/readyz", async (_, response) => {
    const found = await findings();
    const lacking = Object.entries(checks).some(([name, { required }]) => required && found.checks[name] !== true);
    const ok = !lacking && !isDraining();
    const problems = Object.keys(found.problems).length > 0 ? { problems: found.problems } : {};
    response.setHeader("Cache-Control", "no-store");
    sendJson(response, ok ? 200 : 503, JSON.stringify({ ok, checks: found.checks, ...problems }));
  });
}

function runChecks(checks: Checks, log: Log, nowMs: () => number): () => Promise<Findings> {
  const reasons = new Map<string, string>();
  const pending = new Map<string, number>();
  let latest: Promise<Findings> | null = null;
  let checkedAt = -Infinity;

  async function isGood(name: string, check: Check): Promise<boolean> {
    const before = pending.get(name) ?? 0;
    if (before >= PENDING) throw new NotReady(`${name} did not respond to the last ${before} checks`);
    pending.set(name, before + 1);
    const result = check.isGood().finally(() => pending.set(name, (pending.get(name) ?? 1) - 1));
    return within(TIMEOUT_MS, name, result);
  }

  async function run(name: string, check: Check, problems: Record<string, string>): Promise<boolean> {
    try {
      const isDone = await isGood(name, check);
      reasons.delete(name);
      return isDone;
    } catch (error) {
      if (error instanceof NotReady) problems[name] = error.message;
      const detail = error instanceof NotReady && error.detail !== "" ? ` (${error.detail})` : "";
      const reason = reasonOf(error) + detail;
      if (reasons.get(name) !== reason) log.warn(`the health check ${name} failed: ${reason}`);
      reasons.set(name, reason);
      return false;
    }
  }

  async function runAll(): Promise<Findings> {
    const problems: Record<string, string> = {};
    const found = await Promise.all(
      Object.entries(checks).map(async ([name, check]) => [name, await run(name, check, problems)] as const),
    );
    return { checks: Object.fromEntries(found), problems };
  }

  return () => {
    const now = nowMs();
    if (latest === null || now - checkedAt > CACHED_MS) {
      checkedAt = now;
      latest = runAll();
    }
    return latest;
  };
}
