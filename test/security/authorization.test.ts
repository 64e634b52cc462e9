import { readFileSync } from "node:fs";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FORMS, PATH_SAMPLES } from "../console/samples.ts";
import { actions } from "../../src/console/index.ts";
import type { Holding } from "../console/world.ts";
import type { CookieClient } from "../support/cookie-client.ts";
import { OUTCOMES, REQUESTERS, type Requester, ROUTES, type RuleName, RULES } from "./authorization.ts";
import { keepFresh, openServers, type ServersWorld } from "./requesters.ts";
import { routesAt } from "./routes-of.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const SIGN_IN = /^\/(?:console|ops)\/(?:sign-in|sign-in\/code|link|confirm|reset|new-email)$/;
/** The only listener of ours that is no Express app: its one route is listed here. */
const NOTICE = "POST /topups/binance-pay/notify";

/** Method, path and rule of every route; HEAD is listed too. */
const listed = Object.entries(ROUTES).flatMap(([rule, routes]) =>
  routes.flatMap((route) => {
    const [method = "", path = ""] = route.split(" ");
    const both = method === "GET" && !routes.includes(`HEAD ${path}`) ? ["GET", "HEAD"] : [method];
    return both.map((one) => ({ rule: rule as RuleName, method: one === "USE" ? "GET" : one, path }));
  }),
);

let world: ServersWorld;
let ann: CookieClient & Holding;
let bob: CookieClient & Holding;
beforeAll(async () => {
  world = await openServers();
  [ann, bob] = [await world.as("ann"), await world.as("bob")];
  for (const { accountId, email } of [ann, bob]) {
    await keepFresh(world.sql, email);
    await world.giveMoney(accountId, 1_000_000_000n);
    await world.givePlan(accountId, "Pro", 20);
  }
});
afterAll(() => world.close());

/** A path with something in the place of each parameter. */
function filled(path: string, value = "1"): string {
  return path.replaceAll(/:\w+/g, value).replaceAll(/\{?\*\w+\}?/g, value);
}

/** What a response decided: an outcome, or a fault. */
async function outcomeOf(method: string, path: string, response: Response): Promise<string> {
  const { status, headers } = response;
  const location = headers.get("location") ?? "";
  const text = await response.text();
  const contains = (words: string) => text.includes(words);
  // this instance has no Redis; a HEAD has no body that could state it
  const isWithoutRedis = text.includes("no Redis") || (method === "HEAD" && path.startsWith("/ops/queues/"));
  if (status >= 500 && !(status === 503 && isWithoutRedis)) return `fault ${status}`;
  if (status === 302 && /^\/(?:console|ops)\/sign-in/.test(location)) return "sign in";
  if (status === 303 && method !== "POST" && location === "/ops/me") return "enroll";
  if (method === "HEAD" && status === 429) return "quota"; // it has no body with the reason
  if (method === "HEAD" && status === 401 && path.startsWith("/api/")) return "key";
  if (status === 401 && headers.get("www-authenticate")?.startsWith("Bearer")) return "token";
  if (status === 401 && text.includes("you are not signed in")) return "sign in";
  if (status === 401 && /"code":"(?:(?:missing|invalid|expired|revoked)_api_key)"/.test(text)) return "key";
  if (status === 429 && /"code":"\w+_quota_exceeded"/.test(text)) return "quota";
  if (text.includes('"returnCode":"FAIL"') && /BinancePay-|signature|certificate/.test(text)) return "signature";
  if (status === 403 && contains("Confirm that it is you")) return "proof";
  if (status === 403 && contains("All staff of this instance must use two-factor authentication")) return "enroll";
  // anyone may try to sign in: what is wrong is the password, the code or the link that was sent
  if (status === 401 && SIGN_IN.test(path)) return "passes";
  return status === 401 || status === 403 || status === 429 ? "refused" : "passes";
}

describe("[API5][V8] the table of who may request what", () => {
  it("lists every route of every server once, and no other", async () => {
    const routers = [
      await routesAt(world.url, "/healthz"),
      await routesAt(world.url, "/console"),
      await routesAt(world.url, "/ops"),
    ];
    const inTable = Object.values(ROUTES).flat();
    expect(inTable.toSorted(), "add what is new to test/security/authorization.ts").toEqual(
      [...new Set(routers.flat()), NOTICE].toSorted(),
    );
    expect(new Set(inTable).size).toBe(inTable.length);
    const ofWorker = await routesAt(world.workerUrl, "/healthz");
    expect(ofWorker.filter((route) => !inTable.includes(route))).toEqual([]);
  });

  it("is of the surfaces that the commands serve", () => {
    for (const file of ["up-parts", "api"]) {
      const text = readFileSync(`src/cli/run/${file}.ts`, "utf8");
      expect(text).toMatch(/^ {4}surfaces: \[ops, consoleSurface, notifySurface\(\{[^}]*\}\)\],$/m);
    }
  });

  it("has outcomes that a response can have", () => {
    for (const { outcomes } of Object.values(RULES)) {
      for (const outcome of Object.values(outcomes)) expect(Object.keys(OUTCOMES)).toContain(outcome);
    }
  });

  it.each(REQUESTERS)("holds for every route: %s", async (as) => {
    const found: string[] = [];
    const expected: string[] = [];
    const turn = REQUESTERS.indexOf(as);
    for (const [at, { rule, method, path }] of listed.entries()) {
      if (method === "HEAD" && (at + turn) % 5 > 0) continue; // served as its GET: each requester asks a fifth
      const outcome = await outcomeOf(method, path, await world.send(as, method, filled(path)));
      found.push(`${method} ${path}: ${outcome}`);
      expected.push(`${method} ${path}: ${RULES[rule].outcomes[as]}`);
    }
    expect(found).toEqual(expected);
  });

  it("holds for the server of a worker", async () => {
    for (const route of await routesAt(world.workerUrl, "/healthz")) {
      const [method = "", path = ""] = route.split(" ");
      const rule = listed.find((one) => one.path === path)!.rule;
      for (const as of REQUESTERS) {
        const response = await world.send(as, method, path, { to: world.workerUrl });
        expect([as, route, await outcomeOf(method, path, response)]).toEqual([as, route, RULES[rule].outcomes[as]]);
      }
    }
  });
});

/** Texts that stand in the place of an id: numbers around the limits of columns, other forms of a number, and none. */
const someId = fc.oneof(
  fc.bigInt({ min: -5n, max: 2n ** 70n }).map(String),
  fc.uuid(),
  fc.constantFrom(
    "0",
    "-1",
    "1e3",
    "0x10",
    "01",
    "1.0",
    "٣",
    "%20",
    "%00",
    "null",
    "..%2f..%2fops",
    "'--",
    "a".repeat(300),
  ),
  fc
    .string({ minLength: 1, maxLength: 12 })
    .map(encodeURIComponent)
    .filter((text) => !/^\.{1,2}$/.test(text)),
);

describe("[API1][V8] whatever is in the place of an id", () => {
  it("every route and method decides as the table states, for every requester", async () => {
    const paths = [...new Set(listed.map(({ path }) => path))];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...REQUESTERS),
        fc.constantFrom(...METHODS),
        fc.constantFrom(...paths),
        someId,
        async (as, method, path, id) => {
          const route = listed.find((one) => one.path === path && one.method === method);
          const response = await world.send(as, method, filled(path, id));
          const outcome = await outcomeOf(method, path, response);
          const context = `${as}: ${method} ${filled(path, id)} returned ${response.status}`;
          expect(outcome, context).not.toMatch(/^fault/);
          if (route === undefined) {
            expect(refusesMethod(as, path, method, response.status), context).toBe(true);
          } else if (![400, 404, 414].includes(response.status)) {
            // a path that cannot be decoded, or is too long, is refused before anyone is asked who they are
            expect(outcome, context).toBe(RULES[route.rule].outcomes[as]);
          }
        },
      ),
      { numRuns: 400 },
    );
  });

  it("a foreign object of a caller has the response of a missing one, and stays as it is", async () => {
    const places = Object.keys(PATH_SAMPLES).map((place) => place.split(" ")[0]!);
    const theirs = new Map<string, string>();
    for (const place of Object.keys(PATH_SAMPLES)) {
      theirs.set(place.split(" ")[0]!, await PATH_SAMPLES[place]!(world, bob));
    }
    const forms = new Map<string, Record<string, string>>();
    for (const path of places) {
      const action = actions.find((one) => one.path === path);
      if (action !== undefined) forms.set(path, (await FORMS[action.name]?.(ann)) ?? {});
    }
    const ask = async (path: string, id: string) => {
      const at = `/console${filled(path, id)}`;
      const form = forms.get(path);
      const response = form === undefined ? await ann.get(at) : await ann.post(at, form);
      const text = (await response.text()).replaceAll(id, "ID").replaceAll(/req_\w+/g, "REQUEST");
      return { status: response.status, text };
    };
    const missing = fc.bigInt({ min: 10n ** 9n, max: 2n ** 63n - 1n }).map(String);
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...new Set(places)), missing, async (path, id) => {
        const foreign = await ask(path, theirs.get(path)!);
        expect(foreign.status).toBe(404);
        expect(foreign).toEqual(await ask(path, id));
      }),
      { numRuns: 60 },
    );
  });
});

/** Whether a method that a path does not take was refused: with 404 or 405, or before that for who sent it. */
function refusesMethod(as: Requester, path: string, method: string, status: number): boolean {
  if (status === 404 || status === 405 || status === 400 || status === 414) return true;
  if (method === "OPTIONS" && status === 204) return true; // of the API and the site: only lists the methods
  const surface = /^\/(console|ops)(?:\/|$)/.exec(path)?.[1];
  if (surface === undefined) return false;
  const { outcomes } = RULES[surface === "ops" ? "ops own" : "console own form"];
  if (outcomes[as] === "sign in") return status === 302 || status === 401;
  return / without /.test(as) && (status === 303 || status === 403);
}
