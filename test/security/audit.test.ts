import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Acceptance, readAcceptances, readAudit } from "./audit.ts";

const TODAY = "2026-11-25";
const ID = "GHSA-aaaa-bbbb-cccc";
const accepted = (changed: Partial<Acceptance> = {}): Acceptance => ({
  advisory: ID,
  package: "leaf",
  reason: "the function is not called by anything of ours",
  until: "2026-12-31",
  ...changed,
});

describe("[SUPPLY] a report of the registry", () => {
  const advisory = (severity: string, id = ID) => ({ source: 1, url: `https://github.com/advisories/${id}`, severity });
  const one = (severity: string, via: unknown[] = [advisory(severity)]) => ({
    name: "x",
    severity,
    via,
    range: "<1.2.3",
  });
  const read = (vulnerabilities: object, acceptances: Acceptance[] = []) =>
    readAudit(JSON.stringify({ auditReportVersion: 2, vulnerabilities, metadata: {} }), acceptances, TODAY);

  it("separates what is grave from what is not", () => {
    expect(read({})).toEqual({ kind: "reported", grave: [], accepted: [], others: 0 });
    expect(read({ a: one("high"), b: one("moderate"), c: one("critical"), d: one("low") })).toEqual({
      kind: "reported",
      grave: [`a <1.2.3: high, ${ID}`, `c <1.2.3: critical, ${ID}`],
      accepted: [],
      others: 2,
    });
  });

  it("accepts an advisory for the package it is of, and those that have it from there, until the last day", () => {
    const all = { leaf: one("high"), above: one("high", ["leaf"]), top: one("high", ["above", "top"]) };
    const line = `leaf ${ID}: ${accepted().reason} (until 2026-12-31)`;
    expect(read(all, [accepted()])).toEqual({ kind: "reported", grave: [], accepted: [line], others: 0 });
    expect(read(all, [accepted({ until: TODAY })])).toMatchObject({ grave: [] });
    expect(read(all, [accepted({ package: "another" })])).toMatchObject({ grave: { length: 3 } });
    expect(read({ leaf: one("high") }, [accepted({ until: "2026-11-24" })])).toMatchObject({
      grave: [`leaf <1.2.3: high, ${ID}; the acceptance of ${ID} has ended`],
    });
  });

  it("accepts no second advisory with the first", () => {
    const other = "GHSA-dddd-eeee-ffff";
    const both = { leaf: one("high", [advisory("high"), advisory("high", other)]) };
    expect(read(both, [accepted()])).toMatchObject({ grave: [`leaf <1.2.3: high, ${other}`] });
  });

  it("is unavailable if the registry has no such service or does not respond", () => {
    const refused = {
      message: "405 Method Not Allowed - POST",
      method: "POST",
      statusCode: 405,
      error: { summary: "" },
    };
    expect(readAudit(JSON.stringify(refused), [], TODAY)).toEqual({ kind: "unavailable", why: "405" });
    expect(readAudit('{"message":"request failed, reason: timeout"}', [], TODAY)).toEqual({
      kind: "unavailable",
      why: "no response",
    });
    const offline = { error: { code: "ECONNREFUSED", summary: "connect ECONNREFUSED", detail: "" } };
    expect(readAudit(JSON.stringify(offline), [], TODAY)).toEqual({ kind: "unavailable", why: "ECONNREFUSED" });
  });

  it("that could not be requested, or cannot be read, is a failure", () => {
    const noLock = {
      error: { code: "EAUDITNOLOCK", summary: "This command requires an existing lockfile.", detail: "" },
    };
    expect(readAudit(JSON.stringify(noLock), [], TODAY)).toEqual({ kind: "broken", why: noLock.error.summary });
    for (const nonsense of ["", "<html>", "{}", "[]", '{"auditReportVersion":3}']) {
      expect(readAudit(nonsense, [], TODAY).kind, nonsense).toBe("broken");
    }
  });
});

describe("[SUPPLY] the list of accepted advisories", () => {
  it("is complete, and accepts nothing for more than half a year", () => {
    expect(
      readAcceptances(readFileSync(join(import.meta.dirname, "accepted-advisories.json"), "utf8"), TODAY),
    ).toBeInstanceOf(Array);
    const list = (entry: object) => () => readAcceptances(JSON.stringify([entry]), TODAY);
    expect(list(accepted())()).toHaveLength(1);
    expect(list(accepted({ until: "2027-06-30" }))).toThrow("at most 2027-05-28");
    expect(list(accepted({ reason: "because" }))).toThrow();
    expect(list(accepted({ until: "soon" }))).toThrow();
    expect(list(accepted({ advisory: "CVE-2026-1" }))).toThrow();
  });
});

describe("[SUPPLY] npm run audit", () => {
  let folder: string;
  let server: Server | null = null;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "audit-"));
    const leaf = { version: "1.0.0", resolved: "https://registry.example/leaf/-/leaf-1.0.0.tgz" };
    const root = { name: "audited", version: "1.0.0", dependencies: { leaf: "1.0.0" } };
    writeFileSync(join(folder, "package.json"), JSON.stringify(root));
    const lock = {
      name: "audited",
      version: "1.0.0",
      lockfileVersion: 3,
      packages: { "": root, "node_modules/leaf": leaf },
    };
    writeFileSync(join(folder, "package-lock.json"), JSON.stringify(lock));
  });
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** Runs the command against a registry that gives this response; returns its code and what it printed. */
  async function audit(respond: RequestListener, args: string[] = [], acceptances: Acceptance[] = []) {
    server = createServer(respond).listen(0, "127.0.0.1");
    await once(server, "listening");
    const registry = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const file = join(folder, "accepted.json");
    writeFileSync(file, JSON.stringify(acceptances));
    const child = spawn(process.execPath, [join(import.meta.dirname, "audit.ts"), "--accepted", file, ...args], {
      cwd: folder,
      env: {
        ...process.env,
        npm_config_registry: registry,
        npm_config_fetch_retries: "0",
        npm_config_cache: mkdtempSync(join(folder, "cache-")), // it keeps advisories
      },
    });
    const [out, err] = [text(child.stdout), text(child.stderr)];
    const [code] = (await once(child, "exit")) as [number];
    return { code, out: await out, err: await err };
  }
  const refuses: RequestListener = (_, response) => void response.writeHead(405).end();
  /** A registry whose advisories are these, by package. */
  const reports = (advisories: object): RequestListener => {
    return ({ url }, response) => {
      response.setHeader("content-type", "application/json");
      if (url?.includes("advisories/bulk")) return void response.end(JSON.stringify(advisories));
      const leaf = { name: "leaf", version: "1.0.0", dist: {} };
      response.end(JSON.stringify({ name: "leaf", "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": leaf } }));
    };
  };
  const severe = (severity: string) => ({
    leaf: [
      { id: 1, url: `https://github.com/advisories/${ID}`, title: "a fault", severity, vulnerable_versions: "<2.0.0" },
    ],
  });
  const day = (ahead: number) => new Date(Date.now() + ahead * 86_400_000).toISOString().slice(0, 10);

  it("ends with 0 if the registry has no advisory service, and states that nothing was audited", async () => {
    expect(await audit(refuses)).toEqual({
      code: 0,
      out: "",
      err: expect.stringMatching(/\(405\): OUR PACKAGES WERE NOT AUDITED\n$/),
    });
  });

  it("ends with 1 then if an audit is required", async () => {
    expect(await audit(refuses, ["--required"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("NOT AUDITED"),
    });
  });

  it("ends with 0 if there is no advisory, or only lesser ones", async () => {
    expect(await audit(reports({}), ["--required"])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^0 packages/),
      err: "",
    });
    expect(await audit(reports(severe("moderate")))).toMatchObject({
      code: 0,
      out: expect.stringContaining("1 with lesser"),
    });
  });

  it("ends with 1 if there is a grave one, and names it", async () => {
    expect(await audit(reports(severe("critical")))).toMatchObject({
      code: 1,
      err: expect.stringContaining(`critical, ${ID}`),
    });
  });

  it("ends with 0 while a grave one is accepted, printing the reason, and with 1 afterwards", async () => {
    const now = await audit(reports(severe("high")), [], [accepted({ until: day(7) })]);
    expect(now).toMatchObject({ code: 0, out: expect.stringContaining(accepted().reason) });
    const later = await audit(reports(severe("high")), [], [accepted({ until: day(-1) })]);
    expect(later).toMatchObject({ code: 1, err: expect.stringContaining("has ended") });
  });
});
