import express from "express";
import pino from "pino";
import { expect, it } from "vitest";
import { z } from "zod";
import * as deprecation from "../../src/api/deprecation.ts";
import { openServer } from "../../src/http/http.ts";
import { addOperation, OPERATIONS } from "../../src/api/operations.ts";
import { ApiError } from "../../src/http/errors.ts";
import { sendErrors, beginRequest } from "../../src/http/request.ts";
import { listExamples, runExample } from "../support/examples.ts";

it.each(listExamples("src/api/deprecation.ts").map((example) => [example.title, example] as const))(
  "the examples of %s hold",
  (_, example) => {
    for (const { actual, ...claim } of runExample(example, deprecation)) {
      expect({ ...claim, expected: actual }).toEqual(claim);
    }
  },
);

it("no operation is deprecated", () => {
  expect(OPERATIONS.filter(({ deprecated }) => deprecated !== undefined)).toEqual([]);
});

it("a deprecated operation sends its headers with every response of its path, and no other path does", async () => {
  const log = pino({ level: "silent" });
  const app = express();
  const parts = {
    caller: [() => Promise.reject(new ApiError("missing_api_key"))],
  } as unknown as Parameters<typeof addOperation>[2];
  const operation = { endpoint: "old", params: z.strictObject({}), compose: () => ({ etag: '""', json: () => "{}" }) };
  const deprecated = {
    sinceMs: Date.UTC(2027, 0, 1),
    sunsetMs: Date.UTC(2027, 6, 1),
    page: "/docs#changes",
    successor: "/api/v2/new",
  };
  app.use(beginRequest(log));
  addOperation(app, { ...operation, path: "/old", deprecated }, parts);
  addOperation(app, { ...operation, path: "/new" }, parts);
  app.use(sendErrors(() => "", log));
  const server = await openServer(app, { host: "127.0.0.1", port: 0, variable: "PORT" }, () => "", log);
  try {
    for (const method of ["GET", "HEAD", "OPTIONS", "POST"]) {
      const { headers } = await fetch(`${server.url}/old`, { method });
      expect(headers.get("deprecation")).toBe("@1798761600");
      expect(headers.get("sunset")).toBe("Thu, 01 Jul 2027 00:00:00 GMT");
      expect(headers.get("link")).toBe(
        '</docs#changes>; rel="deprecation"; type="text/html", </api/v2/new>; rel="successor-version"',
      );
      const other = await fetch(`${server.url}/new`, { method });
      expect(["deprecation", "sunset", "link"].map((name) => other.headers.get(name))).toEqual([null, null, null]);
    }
  } finally {
    await server.close();
  }
});
