import { setTimeout as delay } from "node:timers/promises";
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import type { Sql } from "../../src/db/client.ts";
import { draw } from "../../src/demo/draw.ts";
import { checkResponse, PATHS, readRefusal, type Shown } from "./check-responses.ts";
import { InvariantViolation } from "./invariant-violation.ts";
import { drawOne, type ManagedProcess } from "./processes.ts";
import type { Truth } from "./truth.ts";

/** A caller and the results of its calls. */
export interface Caller {
  email: string;
  plan: string;
  key: string;
  /** Calls with status 200. */
  served: number;
  /** Calls with status 304, which are not counted. */
  unchanged: number;
  /** Calls without a response, which may have been counted. */
  cutOff: number;
  /** The fewest calls left of the day's quota as reported, less those since then that may have been counted. */
  left: number;
  refused: Map<string, number>;
}

/** Calls per day of the smallest plan, few enough that a simulated day uses them up. */
export const QUOTA = 25;
const LIMITED = "Starter";
const WAIT_MS = 20_000;
const USED_UP_MS = 500;
const USED_UP_WITHIN_MS = 60_000;
const BURSTS = 0.2;
const BURST = 3;
/**
 * When one call of the quota is left, the caller sends this number together, spread over all APIs, so that batches of two
 * processes need more than that call. With more left, their sizes may sum to it exactly, and nothing is tested. Before
 * that the caller waits until its rate limit allows them.
 */
const BURST_AT_END = 8;
const REST_MS = 4_000;
const CONDITIONAL = 0.3;

/**
 * Creates an account with a key for each plan; the smallest plan gets a quota that a simulated day uses up. The plans
 * cover the houses that exist now, so that a house that a fault adds does not change any response.
 */
export async function makeCallers(sql: Sql): Promise<Caller[]> {
  await sql`insert into plan_houses (plan, house_id) select p.name, h.id from plans p cross join houses h`;
  await sql`update plans set all_houses = false`;
  await sql`update plans set day_limit = ${QUOTA}, burst = ${BURST_AT_END} where name = ${LIMITED}`;
  const made: Caller[] = [];
  for (const plan of ["Max", LIMITED, "Pro"] as const) {
    const email = `${plan.toLowerCase()}@example.com`;
    await createAccount(sql, email);
    const key = await createKey(sql, { email, plan });
    if (!key.ok) throw new Error(key.problem);
    made.push({
      email,
      plan,
      key: key.key,
      served: 0,
      unchanged: 0,
      cutOff: 0,
      left: Number.POSITIVE_INFINITY,
      refused: new Map(),
    });
  }
  return made;
}

/** Waits until the smallest plan's quota is used up, at most a minute: on a busy machine calls take long. */
export async function waitUntilUsedUp(callers: readonly Caller[]): Promise<void> {
  const isUsedUp = () =>
    callers.every(
      ({ plan, refused, served }) => plan !== LIMITED || refused.has("day_quota_exceeded") || served > QUOTA,
    );
  for (const end = performance.now() + USED_UP_WITHIN_MS; !isUsedUp() && performance.now() < end;) await delay(100);
}

/**
 * Calls the APIs until `signal` aborts, and checks every response.
 * @throws InvariantViolation for the first response that is neither correct nor an allowed refusal
 */
export async function sendCalls(
  caller: Caller,
  {
    truth,
    apis,
    pauseMs,
    signal,
  }: { truth: Truth; apis: readonly ManagedProcess[]; pauseMs: number; signal: AbortSignal },
): Promise<void> {
  const { email, plan, key } = caller;
  const etags = new Map<string, string>();
  const shown: Shown = new Map();
  for (let n = 0; !signal.aborted; n++) {
    await delay(pauseMs * (0.5 + draw(truth.seed, email, "pause", n)));
    // sometimes several together, so that two processes count calls of one account concurrently
    const size = caller.left > BURST && draw(truth.seed, email, "burst", n) < BURSTS ? BURST : 1;
    const isAtEnd = plan === LIMITED && caller.left <= 1 && !caller.refused.has("day_quota_exceeded");
    if (isAtEnd) await delay(REST_MS);
    await Promise.all(
      isAtEnd
        ? Array.from({ length: BURST_AT_END }, (_, place) => callOnce(String(n), apis[place % apis.length], 0)) // a 304 costs no quota
        : Array.from({ length: size }, (_, place) => callOnce(`${n}.${place}`)),
    );
  }

  /** Calls with the same number go to the same path. */
  async function callOnce(
    number: string,
    api = drawOne(apis, truth.seed, email, "api", number),
    conditional = CONDITIONAL,
  ): Promise<void> {
    const url = api.url();
    if (url === null) return;
    const path = drawOne(PATHS, truth.seed, email, "path", number);
    const etag = draw(truth.seed, email, "conditional", number) < conditional ? etags.get(path) : undefined;
    const shownBefore = new Map(shown);
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${url}/api/v1/${path}`, {
        headers: { "x-api-key": key, ...(etag !== undefined && { "if-none-match": etag }) },
        signal: AbortSignal.timeout(WAIT_MS),
      });
      text = await response.text();
    } catch {
      caller.cutOff += 1;
      caller.left -= 1;
      // only a process that was killed may leave a call without a response
      if (api.url() !== url) return;
      throw new InvariantViolation(
        `${api.name}, which is running, did not respond to ${path} within ${WAIT_MS / 1_000} s`,
      );
    }
    if (response.status === 304) {
      if (etag === undefined) throw new InvariantViolation(`${path} returned 304 to a request without if-none-match`);
      caller.unchanged += 1;
      return;
    }
    if (response.status !== 200) {
      const code = readRefusal(path, response.status, text);
      caller.refused.set(code, (caller.refused.get(code) ?? 0) + 1);
      if (code === "temporarily_unavailable") caller.left -= 1;
      if (code.endsWith("quota_exceeded")) await delay(USED_UP_MS);
      return;
    }
    caller.served += 1;
    // responses to calls sent together may arrive in another order
    const left = Number(response.headers.get("x-quota-day-remaining") ?? Number.POSITIVE_INFINITY);
    caller.left = Math.min(caller.left, left);
    etags.set(path, response.headers.get("etag") ?? "");
    checkResponse(truth, { path, text, plan, by: url, shown, shownBefore });
  }
}
