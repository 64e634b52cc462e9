import { setTimeout as delay } from "node:timers/promises";
import { createAccount, createKey } from "../../src/callers/store.ts";
import type { Sql } from "../../src/db/client.ts";
import { draw } from "../../src/demo/draw.ts";
import { checkResponse, PATHS, readRefusal, type Shown } from "./check-responses.ts";
import { InvariantViolation } from "./invariant-violation.ts";
import { drawOne, type ManagedProcess } from "./processes.ts";
import type { Truth } from "./truth.ts";

/** What a caller has seen: calls that were answered 200, and calls of which no answer came. */
export interface Caller {
  email: string;
  plan: string;
  key: string;
  served: number;
  /** Told that it has the answer already, which costs nothing. */
  unchanged: number;
  /** Sent, and cut off before its answer: it may have been counted. */
  cutOff: number;
  refused: Map<string, number>;
}

/** The day's calls of the smallest plan here, so few that they are used up. */
export const QUOTA = 25;
const LIMITED = "Starter";
const WAIT_MS = 20_000;
const USED_UP_MS = 500;
const BURSTS = 0.2;
const BURST = 3;
/** Near the end of a quota one API gets as many calls of one path at once, a batch that what is left cuts in two; before
 * that the caller rests until its rate allows for them. */
const NEAR_END = 4;
const BURST_AT_END = 8;
const REST_MS = 4_000;
const CONDITIONAL = 0.3;

/**
 * Makes an account with a key for each plan; the smallest plan gets a quota that a simulated day uses up. Plans are for the
 * houses that are there now, so that those of a fault change no response.
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
    if (!key.ok) throw new Error(key.reason);
    made.push({ email, plan, key: key.key, served: 0, unchanged: 0, cutOff: 0, refused: new Map() });
  }
  return made;
}

/**
 * Calls the APIs until it is told to stop, and holds every answer against the truth.
 * @throws Broken for the first answer that is neither true nor an honest refusal
 */
export async function call(
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
    // now and then several at once, which two processes then count at once
    const size = draw(truth.seed, email, "burst", n) < BURSTS ? BURST : 1;
    const isNearEnd = plan === LIMITED && caller.served < QUOTA && caller.served >= QUOTA - NEAR_END;
    if (isNearEnd) await delay(REST_MS);
    await Promise.all(
      isNearEnd
        ? Array.from({ length: BURST_AT_END }, () => callOnce(String(n)))
        : Array.from({ length: size }, (_, place) => callOnce(`${n}.${place}`)),
    );
  }

  /** Calls of one number go to the same API for the same path. */
  async function callOnce(number: string): Promise<void> {
    const api = drawOne(apis, truth.seed, email, "api", number);
    const url = api.url();
    if (url === null) return;
    const path = drawOne(PATHS, truth.seed, email, "path", number);
    const etag = draw(truth.seed, email, "conditional", number) < CONDITIONAL ? etags.get(path) : undefined;
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
      // a process that was killed answers nobody; one that lives must
      if (api.url() !== url) return;
      throw new InvariantViolation(`${path} was not served by ${api.name} within ${WAIT_MS / 1_000} s, which lives`);
    }
    if (response.status === 304) {
      if (etag === undefined)
        throw new InvariantViolation(`${path} was served 304 to a caller who had named no answer`);
      caller.unchanged += 1;
      return;
    }
    if (response.status !== 200) {
      const code = readRefusal(path, response.status, text);
      caller.refused.set(code, (caller.refused.get(code) ?? 0) + 1);
      if (code.endsWith("quota_exceeded")) await delay(USED_UP_MS);
      return;
    }
    caller.served += 1;
    etags.set(path, response.headers.get("etag") ?? "");
    checkResponse(truth, { path, text, plan, by: url, shown, shownBefore });
  }
}
