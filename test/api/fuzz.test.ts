import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { LIMITS } from "../../src/http/http.ts";
import { eventually } from "../support/eventually.ts";
import { conform } from "./conform.ts";
import { anyRequest, damagedRequest } from "./fuzz-requests.ts";
import { exchange, type Reply } from "./raw.ts";
import { addRounds, countedRounds, errorBody, makeWorld, type World } from "./world.ts";

/** More with `FUZZ_RUNS=20000`; what failed again with `FUZZ_SEED` and the seed that was printed. */
const RUNS = Number(process.env["FUZZ_RUNS"] ?? 150);
const SEED = process.env["FUZZ_SEED"];
const OPTIONS = { numRuns: RUNS, ...(SEED === undefined ? {} : { seed: Number(SEED) }) };
/** About one list of thirty has a request whose body does not arrive, which is refused after 15 s if nothing else is set. */
const REQUEST_WITHIN_MS = 1_500;
const TIMEOUT_MS = 60_000 + RUNS * 1_500;
/** Requests that are under way at the same time. */
const AT_ONCE = 6;
const usageBody = z.object({ day: z.object({ requests: z.int() }) });

let world: World;

beforeAll(async () => {
  const limits = {
    ...LIMITS,
    requestWithinMs: REQUEST_WITHIN_MS,
    headersWithinMs: REQUEST_WITHIN_MS,
    checkEachMs: 100,
  };
  world = await makeWorld({ TRUSTED_PROXIES: ["127.0.0.1"] }, { limits });
  await addRounds(world.sql, "alpha/crash/global", countedRounds(1, 50));
  await eventually(async () => (await (await world.get("/api/v1/rounds")).text()).includes('"50"'));
});
afterAll(() => world.close());

async function counted(): Promise<number> {
  const response = await world.get("/api/v1/usage");
  return usageBody.parse(await response.json()).day.requests;
}

/** Whether the response costs a call. */
function isCharged({ status, headers }: Reply): boolean {
  return status === 200 && headers.has("x-data-age");
}

function check(reply: Reply): void {
  const { status, headers, body } = reply;
  expect(status).toBeLessThan(500);
  expect(headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/);
  expect(body).not.toContain(world.key);
  if (status < 400 || body === "") return;
  // a client that accepts HTML gets a page for an unknown path, and for an unreadable filter of the site
  if ([400, 404].includes(status) && headers.get("content-type") === "text/html; charset=utf-8") {
    expect(body).toMatch(/^<!doctype html>.*<\/html>\s*$/s);
    return;
  }
  expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(errorBody.parse(JSON.parse(body)).request_id).toBe(headers.get("x-request-id"));
}

/** What of these texts the log has since that line. */
function logged(since: number, texts: readonly string[]): string[] {
  const lines = world.lines.slice(since).join("\n");
  return texts.filter((text) => lines.includes(text));
}

describe("[API4][V4] whatever is asked", () => {
  it(
    "gets a documented response or the envelope of an error, costs a call only with a 200, and leaves no secret in the log",
    async () => {
      const secrets: string[] = [world.key, world.key.slice(8, 40)];
      const statuses = new Map<number, number>();
      const [before, since] = [await counted(), world.lines.length];
      let charged = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(anyRequest(world.key), { minLength: 1, maxLength: AT_ONCE }), async (requests) => {
          const responses = await Promise.all(requests.map(({ text }) => exchange(world.api.port, text)));
          charged += responses.flat().filter(isCharged).length;
          for (const [at, { method, target, secrets: own }] of requests.entries()) {
            secrets.push(...own);
            const replies = responses[at] ?? [];
            for (const reply of replies) {
              statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
              check(reply);
            }
            const [reply] = replies;
            if (reply === undefined) throw new Error(`expected a response to ${method} ${target}, got none`);
            if (method === "HEAD") expect(reply.body === "" || reply.status >= 400).toBe(true);
            const { status, headers, body } = reply;
            const isBodiless = [204, 304].includes(status);
            await conform(method, target, new Response(isBodiless ? null : body, { status, headers }));
          }
        }),
        OPTIONS,
      );
      // or the inputs would have grown so wild that they test nothing any more

      for (const status of [200, 400, 401, 404, 405]) expect([...statuses.keys()]).toContain(status);
      expect((await counted()) - before).toBe(charged);
      expect(logged(since, secrets)).toEqual([]);
      expect(world.lines.slice(since).filter((line) => /"level":(?:50|60)/.test(line))).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    "may be damaged in any way: every response is still well-formed",
    async () => {
      const [before, since] = [await counted(), world.lines.length];
      let [charged, cutOff] = [0, 0];
      await fc.assert(
        fc.asyncProperty(
          fc.array(damagedRequest(world.key), { minLength: 1, maxLength: AT_ONCE }),
          async (requests) => {
            const responses = await Promise.all(requests.map((bytes) => exchange(world.api.port, bytes)));
            charged += responses.flat().filter(isCharged).length;
            cutOff += responses.filter((replies) => replies.at(-1)?.body.includes('"version"') !== true).length;
            for (const reply of responses.flat()) check(reply);
          },
        ),
        OPTIONS,
      );
      const spent = (await counted()) - before;
      expect(spent).toBeGreaterThanOrEqual(charged);
      expect(spent).toBeLessThanOrEqual(charged + cutOff);
      expect(logged(since, [world.key, world.key.slice(8, 40)])).toEqual([]);
      expect(world.lines.slice(since).filter((line) => /"level":(?:50|60)/.test(line))).toEqual([]);
    },
    TIMEOUT_MS,
  );
});
