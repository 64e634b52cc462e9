import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { createDatabase, createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { ask, makeFolder, startRoundhouse, untilReady } from "./world.ts";

const spans = z.looseObject({
  resourceSpans: z.array(
    z.looseObject({
      scopeSpans: z.array(
        z.looseObject({
          spans: z.array(
            z.looseObject({
              traceId: z.string(),
              spanId: z.string(),
              parentSpanId: z.string().optional(),
              name: z.string(),
              attributes: z.array(z.looseObject({ key: z.string(), value: z.unknown() })),
            }),
          ),
        }),
      ),
    }),
  ),
});
type Span = z.infer<typeof spans>["resourceSpans"][number]["scopeSpans"][number]["spans"][number];

it("traces go from a poll to its forecasts and from a call to the meter, to the collector that is named", async () => {
  const received: Span[] = [];
  const take = async (path: string | undefined, body: Promise<string>) => {
    if (path !== "/v1/traces") return;
    const { resourceSpans } = spans.parse(JSON.parse(await body));
    received.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((one) => one.spans)));
  };
  const collector = createServer((request, response) => {
    void take(request.url, text(request)).finally(() => response.end("{}"));
  });
  await once(collector.listen(0, "127.0.0.1"), "listening");
  const address = collector.address();
  if (address === null || typeof address === "string") throw new Error("expected the collector to have a port");
  onTestFinished(() => void collector.close());
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: (await createRedis()).url,
    DATA_DIR: join(await makeFolder(), "data"),
    PORT: "0",
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${address.port}`,
  };
  const up = startRoundhouse(["up", "--json"], { env });
  const ready = await untilReady(up);
  const trace = "0af7651916cd43dd8448eb211c80319c";
  await eventually(async () => (await ask(ready, "/api/v1/games")).status === 200);
  await fetch(`${ready.url}/api/v1/games?house=bustabit`, {
    headers: { "x-api-key": ready.api_key, traceparent: `00-${trace}-b7ad6b7169203331-01` },
  });
  const pass = await eventually(
    () =>
      received.find(
        ({ name, attributes }) =>
          name === "pass" &&
          attributes.some(({ key, value }) => key === "forecasts" && JSON.stringify(value) !== '{"intValue":0}'),
      ),
    { timeoutMs: 45_000 },
  );
  up.kill("SIGTERM");
  expect(await up.ended).toMatchObject({ code: 0 }); // the last spans are sent at the end

  const poll = received.find(({ spanId }) => spanId === pass.parentSpanId);
  expect([poll?.traceId, poll?.name]).toEqual([pass.traceId, expect.stringContaining("poll-house")]);
  expect(received.some(({ name, traceId }) => name === "house.request" && traceId === pass.traceId)).toBe(true);

  const call = received.find(({ name, traceId }) => name === "GET /api/v1/games" && traceId === trace);
  const meter = received.find(({ name, traceId }) => name === "meter.count" && traceId === trace);
  expect(call?.parentSpanId).toBe("b7ad6b7169203331");
  expect(meter?.parentSpanId).toBe(call?.spanId);
  expect(JSON.stringify(received)).not.toContain(ready.api_key);
});

it("a collector that is away is reported, and a stop is in order all the same", async () => {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: (await createRedis()).url,
    DATA_DIR: join(await makeFolder(), "data"),
    PORT: "0",
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
  };
  const api = startRoundhouse(["api", "--json"], { env });
  expect((await ask({ ...(await untilReady(api)), api_key: "none" }, "/api/v1/games")).status).toBe(401);
  api.kill("SIGINT");
  const { code, stderr } = await api.ended;
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringContaining("the last spans were not sent") as string,
  });
});
