import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import express from "express";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { FAILURES } from "../../src/http/errors.ts";
import { openApiDocument } from "../../src/api/openapi/document.ts";
import { OPERATIONS } from "../../src/api/operations.ts";
import { documentedPaths } from "./conform.ts";
import { makeWorld, type World } from "./world.ts";

const PAGES = [
  "/",
  "/accuracy",
  "/method",
  "/log/checkpoint",
  "/log/export/:kind/:house/:game/:market",
  "/log/key",
  "/log/tile/{*path}",
  "/plans",
  "/status",
  "/terms",
  "/terms.txt",
  "/privacy",
  "/responsible-gambling",
  "/docs",
  "/docs/errors",
  "/docs/changes",
  "/docs/changes.atom",
  "/docs/guides/accuracy",
  "/docs/guides/polling",
  "/docs/guides/verify",
  "/docs/quick-start",
  "/fonts/inter.woff2",
  "/fonts/jetbrains-mono.woff2",
  "/houses",
  "/houses/:house",
  "/houses/:house/:game/:market",
  "/og.png",
  "/site.css",
  "/site.js",
  "/status.atom",
  "/frame.css",
  "/frame.js",
  "/icon.svg",
  "/robots.txt",
  "/sitemap.xml",
];
const document = openApiDocument({ site: "https://rounds.example", version: "1.2.3" });
let world: World;
let routes: string[];

beforeAll(async () => {
  const route = vi.spyOn(express.application, "route");
  world = await makeWorld();
  routes = [...new Set(route.mock.calls.map(([of]) => String(of)))];
  route.mockRestore();
});
afterAll(() => world.close());

/** Every object within, with the way to it. */
function within(value: unknown, way: string[] = []): { way: string; value: Record<string, unknown> }[] {
  if (typeof value !== "object" || value === null) return [];
  const inner = Object.entries(value).flatMap(([name, one]) => within(one, [...way, name]));
  return Array.isArray(value) ? inner : [{ way: way.join("/"), value: Object(value) }, ...inner];
}

describe("/openapi.json", () => {
  it("is the document, under our own address, for anybody and any page", async () => {
    const response = await fetch(`${world.api.url}/openapi.json`, { headers: { Origin: "https://a.example" } });
    expect(response.status).toBe(200);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    const expected = openApiDocument({ site: world.api.url, version: "1.2.3" });
    expect(await response.json()).toEqual(JSON.parse(JSON.stringify(expected)));
  });

  it("is 304 to a client that has it", async () => {
    const etag = (await world.get("/openapi.json")).headers.get("etag") ?? "";
    expect(etag).toMatch(/^W\/"[\w-]{27}"$/);
    const again = await world.get("/openapi.json", { headers: { "If-None-Match": etag } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    expect(again.headers.get("etag")).toBe(etag);
  });

  it("is the only path that pages of other sites may read", async () => {
    for (const one of routes) {
      const response = await world.get(one, { headers: { Origin: "https://a.example" } });
      await response.arrayBuffer();
      const allowed = [...response.headers.keys()].filter((name) => name.startsWith("access-control-"));
      expect(allowed, one).toEqual(one === "/openapi.json" ? ["access-control-allow-origin"] : []);
    }
  });
});

describe("the document", () => {
  it("[API9] has every path there is but the pages for people, and no other", () => {
    expect(routes.filter((one) => !PAGES.includes(one)).toSorted()).toEqual([...documentedPaths].toSorted());
    expect(routes).toEqual(expect.arrayContaining(PAGES));
  });

  it("has every operation's parameters and no other", async () => {
    for (const { path: name, params } of OPERATIONS) {
      const listed = z
        .object({ get: z.object({ parameters: z.array(z.object({ name: z.string(), in: z.string() })) }) })
        .parse(document.paths[name]).get.parameters;
      const inQuery = listed.filter((parameter) => parameter.in === "query").map((parameter) => parameter.name);
      expect(inQuery).toEqual(Object.keys(params.shape));
      const { details } = await world.refused(`${name}?nothing=1`);
      expect(details).toEqual({ unknown: ["nothing"], allowed: inQuery });
    }
  });

  it("shows a value for every parameter that its path takes", async () => {
    const parameter = z.object({
      in: z.literal("query"),
      name: z.string(),
      example: z.unknown(),
      schema: z.object({ default: z.unknown().optional() }),
    });
    for (const [name, { get }] of Object.entries<{ get?: unknown }>(document.paths).filter(([one]) =>
      one.startsWith("/api/"),
    )) {
      for (const one of z.object({ parameters: z.array(z.unknown()) }).parse(get).parameters) {
        const { success, data } = parameter.safeParse(one);
        if (!success) continue;
        const response = await world.get(`${name}?${data.name}=${String(data.example)}`);
        const body = z.object({ error: z.object({ code: z.string() }).optional() }).parse(await response.json());
        expect([undefined, "table_not_found"], `${name} ${data.name}`).toContain(body.error?.code);
      }
    }
  });

  it("[API3] describes every field of every response", () => {
    const schemas = within(document.components.schemas).flatMap(({ way, value }) =>
      Object.entries(Object(value["properties"] ?? {})).map(([name, field]) => ({
        field: `${way}/${name}`,
        of: Object(field),
      })),
    );
    expect(schemas.length).toBeGreaterThan(100);
    const isSaid = (of: Record<string, unknown>) =>
      "description" in of ||
      "$ref" in of ||
      z.object({ items: z.object({ properties: z.object({}) }) }).safeParse(of).success;
    expect(schemas.filter(({ of }) => !isSaid(of)).map(({ field }) => field)).toEqual([]);
  });

  it("writes pairs as arrays of two items, since Prism and code generators reject prefixItems", () => {
    const arrays = within(document).filter(({ value }) => value["type"] === "array");
    expect(arrays.length).toBeGreaterThan(10);
    const isPlain = ({ value }: (typeof arrays)[number]) =>
      !("prefixItems" in value) && typeof value["items"] === "object";
    expect(arrays.filter((one) => !isPlain(one)).map(({ way }) => way)).toEqual([]);
    expect(arrays.filter(({ value }) => value["minItems"] === 2 && value["maxItems"] === 2)).toHaveLength(4);
  });

  it("has every error of the table at the paths that can return it, except those of unknown paths and methods", () => {
    const codes = within(document.components.responses).flatMap(({ way, value }) =>
      way.endsWith("/code") ? z.array(z.string()).parse(value["enum"]) : [],
    );
    const elsewhere = ["not_found", "method_not_allowed"];
    expect([...new Set(codes)].toSorted()).toEqual(
      Object.keys(FAILURES)
        .filter((code) => !elsewhere.includes(code))
        .toSorted(),
    );
  });

  it("knows nothing of what is only announced", () => {
    expect(documentedPaths.filter((one) => /stream|history|hook|bankroll|label/.test(one))).toEqual([]);
  });

  it("is valid, and Redocly has nothing to say about it", async () => {
    const folder = await mkdtemp(path.join(tmpdir(), "roundhouse-openapi-"));
    try {
      const file = path.join(folder, "openapi.json");
      await writeFile(file, JSON.stringify(document));
      const { stdout, stderr } = await promisify(execFile)(
        process.execPath,
        [
          fileURLToPath(import.meta.resolve("@redocly/cli/bin/cli.js")),
          "lint",
          file,
          "--format=json",
          `--config=${path.join(import.meta.dirname, "redocly.yaml")}`,
        ],
        { env: { PATH: process.env["PATH"], REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" } },
      );
      expect(JSON.parse(stdout), stderr).toMatchObject({
        totals: { errors: 0, warnings: 0, ignored: 0 },
        problems: [],
      });
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
