import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import pino from "pino";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openServer, LIMITS } from "../../src/http/http.ts";
import { connect } from "../../src/db/client.ts";
import { json } from "../../src/demo/response.ts";
import { serve } from "../../src/demo/serve.ts";
import { makeKey } from "../api/world.ts";
import { createDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { dial, dialMany, drip, pour, statusesIn, type Wire } from "./raw.ts";

const START = join(import.meta.dirname, "../../src/start.js");
const MOST_MEGABYTES_MORE = 200;
const silent = pino({ level: "silent" });

/** The real process that serves callers, people and staff, and its log. */
const api = { port: 0, url: "", key: "", log: "", process: null as ChildProcess | null };

beforeAll(async () => {
  const database = await createDatabase();
  const sql = connect(database.url, { name: "test", max: 1 });
  await sql`update plans set burst_per_second = 100000, burst = 100000`;
  api.key = await makeKey(sql, "caller@example.com", "Max");
  await sql.end();
  const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
  const child = spawn(process.execPath, [START, "api", "--json"], {
    env: {
      PATH,
      HOME,
      NODE_COMPILE_CACHE,
      DATABASE_URL: database.url,
      PORT: "0",
      AUTH_SECRET: "s".repeat(40),
      DRAIN_SECONDS: "0",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  api.process = child;
  let output = "";
  child.stdout.on("data", (text: Buffer) => (output += text.toString()));
  child.stderr.on("data", (text: Buffer) => (api.log += text.toString()));
  const ready = await eventually(() => (output.includes("\n") ? (JSON.parse(output) as { url: string }) : undefined), {
    timeoutMs: 55_000,
  });
  api.url = ready.url;
  api.port = Number(new URL(ready.url).port);
  return async () => {
    child.kill("SIGTERM");
    await eventually(() => child.exitCode !== null || child.signalCode !== null);
    await database.drop();
  };
});
afterAll(() => expect(api.process?.exitCode, api.log.slice(-2_000)).toBeNull()); // whatever was done to it, it still runs

/** Another caller, on a new connection. */
async function otherCaller(): Promise<number> {
  const headers = { "X-Api-Key": api.key, connection: "close" };
  return (await fetch(`${api.url}/api/v1/games`, { headers, signal: AbortSignal.timeout(30_000) })).status;
}

/**
 * Calls as another caller repeatedly until `work` ends, and once more. Each call gets a response: 200, or the 503 of a
 * call that could not be counted in time on a busy machine. The last is 200.
 */
async function othersDuring(work: Promise<unknown>): Promise<void> {
  const seen = new Set<number | string>();
  let isOver = false;
  const over = work.finally(() => (isOver = true));
  do {
    seen.add(await otherCaller().catch((error: unknown) => `no response: ${String(error)}`));
    await Promise.race([over, new Promise((resolve) => setTimeout(resolve, 100).unref())]);
  } while (!isOver);
  await over;
  seen.delete(503);
  seen.add(await eventually(async () => (await otherCaller()) === 200 && 200));
  expect(seen).toEqual(new Set([200]));
}

async function megabytes(): Promise<number> {
  const text = await (await fetch(`${api.url}/metrics`)).text();
  return Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)?.[1]) / 1e6;
}

const request = (line: string, ...headers: string[]) => [line, "Host: a", ...headers, "", ""].join("\r\n");
const form = "Content-Type: application/x-www-form-urlencoded";
const posting = (...headers: string[]) => request("POST /console/sign-in HTTP/1.1", form, ...headers);

const oldest = (all: readonly number[]) => `${Math.max(...all)} ms`;

describe("[API4] connections that never finish what they begin", () => {
  it("are ended, by the demo house too, and every other caller is served meanwhile", async () => {
    const house = await serve({
      host: "127.0.0.1",
      port: 0,
      respond: () => Promise.resolve(json({})),
      onError: () => json({}, 500),
      say: () => undefined,
    });
    onTestFinished(() => house.close());
    const before = await megabytes();
    const kinds: Record<string, Wire[]> = {
      "that send nothing": await dialMany(200, api.port),
      "that send headers drop by drop": await dialMany(100, api.port, "GET / HTTP/1.1\r\nHost: a\r\n"),
      "that send a form drop by drop": await dialMany(50, api.port, posting("Content-Length: 5000")),
      "that send chunks drop by drop": await dialMany(50, api.port, posting("Transfer-Encoding: chunked")),
      "that send nothing to the demo house": await dialMany(20, house.port),
    };
    for (const wire of kinds["that send headers drop by drop"] ?? []) drip(wire, "X-A: b\r\n");
    for (const wire of kinds["that send a form drop by drop"] ?? []) drip(wire, "a");
    for (const wire of kinds["that send chunks drop by drop"] ?? []) drip(wire, "1\r\na\r\n");
    const ends = Object.entries(kinds).map(async ([kind, wires]) => {
      const took = await Promise.all(wires.map(({ ended }) => ended));
      console.log(`${wires.length} ${kind}: all ended, the last after ${oldest(took)}`);
    });
    await othersDuring(Promise.all(ends));
    expect((await megabytes()) - before).toBeLessThan(MOST_MEGABYTES_MORE);
    for (const { text } of kinds["that send headers drop by drop"] ?? []) expect(statusesIn(text())).toEqual([408]);
  });

  it("however many they are, push out one another and never a caller", async () => {
    const before = await megabytes();
    const many = LIMITS.connections + 900;
    let wires: Wire[] = [];
    await othersDuring(dialMany(many, api.port).then((made) => (wires = made)));
    const more = (await megabytes()) - before;
    await Promise.all(wires.slice(0, 800).map(({ ended }) => ended)); // the oldest, to make room
    for (const { socket } of wires) socket.destroy();
    console.log(`${many} connections that send nothing: ${more.toFixed(0)} MB more`);
    expect(more).toBeLessThan(MOST_MEGABYTES_MORE);
  });

  it("without readers for their responses are closed, and so are those that keep their half open", async () => {
    const limits = {
      ...LIMITS,
      stalledMs: 300,
      headersWithinMs: 300,
      requestWithinMs: 300,
      lookEachMs: 50,
      lingerMs: 300,
    };
    const big = Buffer.alloc(64 << 20);
    const respond = (_: unknown, response: { end: (bytes: Buffer) => void }) => response.end(big);
    const server = await openServer(
      respond,
      { host: "127.0.0.1", port: 0, variable: "WORKER_PORT" },
      () => "",
      silent,
      limits,
    );
    onTestFinished(() => server.close());
    const reader = dial(server.port, request("GET / HTTP/1.1"));
    reader.socket.pause();
    const halves = ["", "GET / HTT", request("CONNECT a:443 HTTP/1.1"), "garbage\r\n\r\n"].map((first) =>
      dial(server.port, first, { allowHalfOpen: true }),
    );
    const gone = (socket: Wire["socket"]) =>
      eventually(() => {
        if (!socket.isPaused()) socket.write("x"); // the server no longer reads it: we wait for the reset
        return socket.destroyed || socket.errored !== null;
      });
    await Promise.all(halves.map(({ socket }) => gone(socket)));
    await new Promise((resolve) => setTimeout(resolve, 2 * limits.stalledMs));
    reader.socket.resume();
    await reader.ended;
    expect(reader.socket.bytesRead).toBeLessThan(big.length);
  });

  it("are ended for new ones in the order in which least is lost", async () => {
    const responses: { end: (text: string) => void }[] = [];
    const server = await openServer(
      (asked, response) => (asked.url === "/slow" ? void responses.push(response) : void response.end("here")),
      { host: "127.0.0.1", port: 0, variable: "WORKER_PORT" },
      () => "",
      silent,
      { ...LIMITS, connections: 3 },
    );
    onTestFinished(() => server.close());
    const order: string[] = [];
    const named = (name: string, first: string) => {
      const wire = dial(server.port, first);
      void wire.ended.then(() => order.push(name));
      return wire;
    };
    named("responding", request("GET /slow HTTP/1.1"));
    await eventually(() => responses.length === 1);
    const rested = named("resting", request("GET / HTTP/1.1"));
    await eventually(() => rested.text().endsWith("here"));
    named("silent", "GET / HTTP/1.1\r\nX-Begun: ");
    for (const n of [1, 2, 3]) {
      named(`next ${n}`, request("GET /slow HTTP/1.1"));
      await eventually(() => order.length === n && responses.length === n + 1);
    }
    expect(order).toEqual(["silent", "resting", "responding"]);
  });
});

describe("[API4] too many at the same time", () => {
  it.each([
    ["a header of 100 KB", request("GET / HTTP/1.1", `X-A: ${"a".repeat(100_000)}`), 431],
    ["ten thousand headers", request("GET / HTTP/1.1", ...Array.from({ length: 10_000 }, (_, n) => `a${n}: b`)), 431],
    ["a URL of 1 MB", request(`GET /${"a".repeat(1 << 20)} HTTP/1.1`), 431],
    ["a trailer of 100 KB", `${posting("Transfer-Encoding: chunked")}0\r\nX-A: ${"a".repeat(100_000)}\r\n\r\n`, 431],
    ["a chunk with 100 KB of extensions", `${posting("Transfer-Encoding: chunked")}1;${"a".repeat(100_000)}\r\n`, 413],
  ])("%s is refused, and its connection ended", async (_, bytes, status) => {
    const wire = dial(api.port, bytes);
    await wire.ended;
    // one that was reset while it still sent may have read nothing
    for (const seen of statusesIn(wire.text())) expect(seen).toBe(status);
    await othersDuring(Promise.resolve());
  });

  it("a key that is sent twice is refused, however many headers are between", async () => {
    const between = Array.from({ length: 2_100 }, () => "a:b");
    const key = `X-Api-Key: ${api.key}`;
    const wire = dial(api.port, request("GET /api/v1/games HTTP/1.1", key, ...between, key, "Connection: close"));
    await wire.ended;
    expect(statusesIn(wire.text())).toEqual([401]);
  });

  it.each([
    ["of a form", posting("Transfer-Encoding: chunked")],
    ["that no route reads", request("POST /api/v1/games HTTP/1.1", "Transfer-Encoding: chunked")],
    ["of an operator", request("POST /ops/sign-in HTTP/1.1", form, "Transfer-Encoding: chunked")],
  ])("an endless body, %s, takes neither memory nor the time of others", async (_, head) => {
    const before = await megabytes();
    const chunk = Buffer.from(`10000\r\n${"a".repeat(65_536)}\r\n`);
    const wires = Array.from({ length: 4 }, () => dial(api.port, head));
    const poured = Promise.all(wires.map((wire) => pour(wire, chunk)));
    await othersDuring(poured);
    const bytes = (await poured).reduce((sum, each) => sum + each, 0);
    console.log(`endless bodies: ${(bytes / 4e6).toFixed(1)} MB sent on each, ended after ${await wires[0]?.ended} ms`);
    expect((await megabytes()) - before).toBeLessThan(MOST_MEGABYTES_MORE);
  });

  it("pipelined requests get responses in order, up to the number that one caller sends", async () => {
    const before = await megabytes();
    const games = request("GET /api/v1/games HTTP/1.1", `X-Api-Key: ${api.key}`);
    const few = dial(api.port, games.repeat(5) + request("GET /last HTTP/1.1", "Connection: close"));
    await few.ended;
    expect(statusesIn(few.text())).toEqual([200, 200, 200, 200, 200, 404]);
    const many = dial(api.port, games.repeat(3_000));
    await othersDuring(many.ended);
    expect(statusesIn(many.text())).toEqual(Array.from({ length: LIMITS.pipelined }, () => 200));
    expect((await megabytes()) - before).toBeLessThan(MOST_MEGABYTES_MORE);
  });

  it("responses without a reader are not made any more", async () => {
    const before = await megabytes();
    const wires = await dialMany(20, api.port, request("GET /openapi.json HTTP/1.1").repeat(2_000));
    for (const { socket } of wires) socket.pause();
    await othersDuring(Promise.resolve());
    expect((await megabytes()) - before).toBeLessThan(MOST_MEGABYTES_MORE);
    for (const { socket } of wires) socket.destroy();
  });

  it("a sender who closed its half holds nothing, whatever was begun", async () => {
    for (const first of [
      request("GET /api/v1/games HTTP/1.1", `X-Api-Key: ${api.key}`),
      "GET / HTTP/1.1\r\nHost",
      "",
    ]) {
      const wire = dial(api.port, "", { allowHalfOpen: true });
      wire.socket.end(first);
      await wire.ended;
      expect(statusesIn(wire.text()).length).toBeLessThanOrEqual(1);
    }
    await othersDuring(Promise.resolve());
  });
});

describe("[API8] a request that two readers would take for different ones", () => {
  const hidden = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
  const shapes: [string, string[], string][] = [
    ["a length and chunks", ["Content-Length: 6", "Transfer-Encoding: chunked"], `0\r\n\r\n${hidden}`],
    ["chunks and a length", ["Transfer-Encoding: chunked", "Content-Length: 6"], `0\r\n\r\n${hidden}`],
    ["two lengths", ["Content-Length: 0", `Content-Length: ${hidden.length}`], hidden],
    ["a list of lengths", [`Content-Length: 0, ${hidden.length}`], hidden],
    ["a length with a sign", ["Content-Length: +0"], hidden],
    ["a negative length", ["Content-Length: -1"], hidden],
    ["a length in hexadecimal", ["Content-Length: 0x0"], hidden],
    ["a length too long for a number", [`Content-Length: ${"9".repeat(30)}`], hidden],
    ["a space before the colon", ["Transfer-Encoding : chunked"], `0\r\n\r\n${hidden}`],
    ["a folded header", ["Transfer-Encoding:\r\n chunked", "Content-Length: 0"], `0\r\n\r\n${hidden}`],
    ["chunked written otherwise", ["Transfer-Encoding: xchunked"], `0\r\n\r\n${hidden}`],
    ["chunked and something after it", ["Transfer-Encoding: chunked, identity"], `0\r\n\r\n${hidden}`],
    ["chunked twice", ["Transfer-Encoding: chunked", "Transfer-Encoding: cow"], `0\r\n\r\n${hidden}`],
    ["a zero byte in a header", ["X-A: a\0b", "Content-Length: 0"], hidden],
    ["a chunk size that is none", ["Transfer-Encoding: chunked"], `0x0\r\n\r\n${hidden}`],
    ["a chunk size with a sign", ["Transfer-Encoding: chunked"], `-0\r\n\r\n${hidden}`],
    ["a chunk longer than its size", ["Transfer-Encoding: chunked"], `1\r\nabc\r\n0\r\n\r\n${hidden}`],
    ["headers that end with bare line feeds", ["X-A: b\n\nGET /smuggled HTTP/1.1"], ""],
    ["a bare return in a header", ["X-A: b\rTransfer-Encoding: chunked", "Content-Length: 0"], hidden],
  ];
  it.each(shapes)("%s: the request hidden in it is not served", async (_, headers, rest) => {
    const paths = ["GET /api/v1/games", "POST /api/v1/games", "POST /console/sign-in", "POST /ops/sign-in"];
    for (const path of paths) {
      const head = [`${path} HTTP/1.1`, "Host: a", form, ...headers, "", ""].join("\r\n");
      const wire = dial(api.port, head + rest);
      await wire.ended;
      const statuses = statusesIn(wire.text());
      expect(statuses.length, path).toBeLessThanOrEqual(1);
      for (const status of statuses) expect(status, path).toBeGreaterThanOrEqual(400);
    }
    await othersDuring(Promise.resolve());
    expect(api.log).toContain('"path":"/api/v1/games"');
    expect(api.log).not.toContain("/smuggled");
  });
});
