import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { conform } from "./conform.ts";
import { exchange } from "./raw.ts";
import { addRounds, makeWorld, type World } from "./world.ts";

/** Announced and not there: their likely paths, and the parameters that would page rounds. */
const FEATURES = [
  "stream streams live ws sse events rounds/stream forecasts/stream",
  "history rounds/history history/rounds rounds/1 archive",
  "webhooks webhook hooks subscriptions callbacks",
  "bankroll bankroll/plan staking stakes",
  "white-label whitelabel white_label branding",
].flatMap((paths) => paths.split(" "));
const PAGING = ["cursor", "offset", "page", "before", "after", "since", "from", "to"];

let world: World;

beforeAll(async () => {
  world = await makeWorld();
  await addRounds(world.sql, "alpha/crash/global", [{ id: "1" }]);
});
afterAll(() => world.close());

/** Every byte of the only response, except the request's id and the time. */
async function bytesOf(method: string, path: string, headers: readonly string[]): Promise<string> {
  const lines = [`${method} ${path} HTTP/1.1`, "Host: a", ...headers, "Connection: close"];
  const replies = await exchange(world.api.port, `${lines.join("\r\n")}\r\n\r\n`);
  expect(replies).toHaveLength(1);
  const [{ head, body } = { head: "", body: "" }] = replies;
  return `${head}\r\n\r\n${body}`.replaceAll(/req_[0-9a-f]{32}/g, "req_").replace(/^Date: .*$/m, "Date:");
}

describe("[API9] what is announced and not there", () => {
  it.each(["GET", "HEAD", "POST", "OPTIONS", "DELETE"])(
    "responds to %s byte by byte like any unknown path",
    async (method) => {
      const keyed = [`X-Api-Key: ${world.key}`];
      const socket = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];
      for (const headers of [
        [],
        keyed,
        ["X-Api-Key: wrong"],
        [...keyed, "Accept: text/event-stream"],
        [...keyed, ...socket],
      ]) {
        const noise = await bytesOf(method, "/api/v1/qwertyuiop", headers);
        expect(noise).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/);
        const responses = await Promise.all(FEATURES.map((name) => bytesOf(method, `/api/v1/${name}`, headers)));
        expect(responses.filter((respond) => respond !== noise)).toEqual([]);
      }
    },
  );

  it("no path takes a parameter that would page", async () => {
    for (const name of PAGING) {
      const refusal = await world.refused(`/api/v1/rounds?${name}=1`);
      expect(refusal).toMatchObject({ status: 400, code: "unknown_parameter", details: { unknown: [name] } });
    }
  });
});

describe("comparing responses with the document", () => {
  const PATH = "/api/v1/rounds";
  const respond = async () => {
    const { status, headers } = await world.get(PATH);
    const body = await (await world.get(PATH)).text();
    return { status, headers: new Headers(headers), body };
  };
  const departure = async (changed: Partial<Awaited<ReturnType<typeof respond>>>) => {
    const { status, headers, body } = { ...(await respond()), ...changed };
    return conform("GET", PATH, new Response(body, { status, headers })).then(
      () => "none",
      (error: unknown) => String(error),
    );
  };
  const without = async (name: string) => {
    const { headers } = await respond();
    headers.delete(name);
    return headers;
  };

  it("finds nothing wrong with what is as documented", async () => {
    expect(await departure({})).toBe("none");
  });

  it("finds a field that is missing, of another kind, or not documented", async () => {
    const { body } = await respond();
    expect(await departure({ body: body.replace('"late":false,', "").replace(',"late":false', "") })).toContain("late");
    expect(await departure({ body: body.replace('"multiplier":1.87', '"multiplier":"1.87"') })).toContain(
      "must be number",
    );
    expect(await departure({ body: body.replace('"late"', '"extra":1,"late"') })).toContain("additional properties");
  });

  it("finds a header that is missing or not documented, and a status that is not", async () => {
    expect(await departure({ headers: await without("etag") })).toContain("the header ETag is missing");
    const { headers } = await respond();
    headers.set("X-Powered-By", "us");
    expect(await departure({ headers })).toContain("the header x-powered-by is not documented");
    expect(await departure({ status: 201 })).toContain("201 is not documented for /api/v1/rounds");
  });

  it("finds an error with a code that its path does not have", async () => {
    const refusal = await fetch(`${world.api.url}/api/v1/nothing`);
    const [text, { headers }] = [await refusal.text(), refusal];
    expect(await departure({ status: 404, headers, body: text })).toContain(
      "must be equal to one of the allowed values",
    );
  });
});
