import fc from "fast-check";
import { documentedPaths } from "./conform.ts";

/** The bytes that are sent, and which of them must not be logged. */
export interface Sent {
  text: string;
  method: string;
  target: string;
  secrets: string[];
}

const FEATURES = ["stream", "history", "webhooks", "bankroll", "white-label", "forecasts/stream", "rounds/history"];
const apiPath = fc.constantFrom(...documentedPaths.filter((path) => path.startsWith("/api/")));

const method = fc.oneof(
  { weight: 12, arbitrary: fc.constant("GET") },
  { weight: 3, arbitrary: fc.constant("HEAD") },
  {
    weight: 3,
    arbitrary: fc.constantFrom("OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND", "QUERY"),
  },
  { weight: 1, arbitrary: fc.constantFrom("get", "FOO", "G E T", "") },
);

/** Anything that a request line can hold without ending it. */
const noise = fc.string({ unit: "binary", maxLength: 40 }).map((text) => text.replaceAll(/[\r\n ]/g, "_"));
const escaped = fc.oneof(
  noise.map(encodeWhatCanBe),
  fc.constantFrom("%00", "%", "%zz", "%E0%A4%A", "%2F", "%2e%2e%2f", "%0d%0aX-Evil:%201"),
);

const path = fc.oneof(
  { weight: 10, arbitrary: apiPath },
  {
    weight: 2,
    arbitrary: fc.constantFrom(...documentedPaths, "/", "/docs", "/docs/errors", "/accuracy", "/frame.css"),
  },
  { weight: 1, arbitrary: fc.constantFrom(...FEATURES).map((name) => `/api/v1/${name}`) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(apiPath, fc.constantFrom("/", "//", "/.", "%2F", ";a=1", "\0", "é"))
      .map(([one, end]) => one + end),
  },
  { weight: 1, arbitrary: apiPath.map((one) => one.toUpperCase()) },
  { weight: 1, arbitrary: apiPath.map((one) => `http://elsewhere.example${one}`) },
  { weight: 1, arbitrary: fc.constantFrom("*", "", "//", "/..", "/../../etc/passwd", "elsewhere.example:443") },
  { weight: 2, arbitrary: escaped.map((text) => `/${text}`) },
);

const ids = ["alpha", "beta", "gamma", "crash", "dice", "rocket", "global", "eu", "one", "nowhere", "Alpha", "", "-a"];
const value = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...ids) },
  { weight: 2, arbitrary: fc.array(fc.constantFrom(...ids), { maxLength: 25 }).map((list) => list.join(",")) },
  {
    weight: 4,
    arbitrary: fc.constantFrom("live", "stale", "24h", "30d", "all", "en", "pt", "next_color", "table", "house"),
  },
  { weight: 3, arbitrary: fc.integer({ min: -5, max: 200 }).map(String) },
  { weight: 1, arbitrary: fc.constantFrom("1e3", "0x1f", "+5", "05", "NaN", "[object Object]", "true") },
  { weight: 2, arbitrary: escaped },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 6_000 }).map((length) => "a".repeat(length)) },
);
const parameterName = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom(
      "house",
      "game",
      "market",
      "status",
      "limit",
      "lang",
      "feature",
      "period",
      "scope",
      "days",
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "cursor",
      "offset",
      "page",
      "before",
      "since",
      "house[]",
      "__proto__",
      "constructor",
      "",
    ),
  },
  { weight: 1, arbitrary: escaped },
);
const query = fc.oneof(
  { weight: 2, arbitrary: fc.constant("") },
  {
    weight: 1,
    arbitrary: fc.constantFrom("?house=alpha", "?game=crash,dice&market=eu", "?house=nowhere", "?limit=5", "?"),
  },
  {
    weight: 2,
    arbitrary: fc
      .array(fc.tuple(parameterName, value), { minLength: 1, maxLength: 4 })
      .map((pairs) => `?${pairs.map(([name, one]) => `${name}=${one}`).join("&")}`),
  },
);

const header = fc.oneof(
  { weight: 3, arbitrary: fc.constant("If-None-Match: *") },
  {
    weight: 5,
    arbitrary: fc.constantFrom(
      "Accept-Encoding: gzip",
      "Accept-Encoding: br;q=1, *;q=0",
      "Accept-Encoding: identity;q=0",
      "Accept: text/html",
      'If-None-Match: W/"a", "b"',
      'If-None-Match: "',
      "Range: bytes=0-1",
      "Expect: 100-continue",
      "Upgrade: websocket",
      "Connection: upgrade",
      "Content-Length: 0",
      "Content-Length: 2",
      "Content-Length: 20000",
      "Content-Length: -1",
      "Transfer-Encoding: chunked",
      "X-Forwarded-For: '; drop table keys; --",
      "X-HTTP-Method-Override: DELETE",
      "Host: b",
      "no colon",
      ": no name",
    ),
  },
  { weight: 3, arbitrary: noise.map((text) => `X-Noise: ${printable(text)}`) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 20_000 }).map((length) => `X-Long: ${"a".repeat(length)}`) },
);

/** A request to a server whose callers have `key`: valid, nearly valid, or hostile. */
export function anyRequest(key: string): fc.Arbitrary<Sent> {
  const keyText: fc.Arbitrary<readonly string[]> = fc.oneof(
    { weight: 10, arbitrary: fc.constant([key]) },
    { weight: 1, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.constant([key, key]) },
    {
      weight: 2,
      arbitrary: fc.constantFrom(
        [""],
        [` ${key}\t`],
        [`${key}0`],
        [key.slice(0, -1)],
        [key.toLowerCase()],
        [`Bearer ${key}`],
        [`rh_live_0123456789ABCDEFGHIJKLMNOPQRSTUV09MR4J`], // well-formed, and of no account
      ),
    },
    { weight: 1, arbitrary: noise.map((text) => [printable(text)]) },
  );
  const inUrl = fc.oneof(
    { weight: 30, arbitrary: fc.constant("") },
    {
      weight: 1,
      arbitrary: fc.constantFrom(`api_key=${key}`, `X-Api-Key=${key}`, `house=${key}`, key.replace("_", "%5f")),
    },
  );
  return fc
    .record({
      method,
      path,
      query,
      inUrl,
      keys: keyText,
      headers: fc.array(header, { maxLength: 3 }),
      host: fc.oneof({ weight: 20, arbitrary: fc.constant(["Host: a"]) }, { weight: 1, arbitrary: fc.constant([]) }),
      marker: fc.uuid(),
      address: fc.ipV4(),
      body: fc.oneof({ weight: 5, arbitrary: fc.constant("") }, { weight: 1, arbitrary: noise }),
    })
    .map((of) => {
      const mark = of.query === "" ? "?" : "&";
      const target = of.path + of.query + (of.inUrl === "" ? "" : mark + of.inUrl);
      const lines = [
        `${of.method} ${target} HTTP/1.1`,
        ...of.host,
        `X-Forwarded-For: ${of.address}`, // else all bad keys would be of one address, and soon be rate limited
        ...of.keys.map((text) => `X-Api-Key: ${text}`),
        `X-Private: ${of.marker}`,
        `Cookie: session=${of.marker}`,
        `Authorization: Bearer ${of.marker}`,
        ...of.headers,
        "Connection: close",
      ];
      // extra bytes may cut off the response, so the end is always stated: see damagedRequest for the rest
      if (of.body !== "" && !of.headers.some((line) => line.startsWith("Transfer-Encoding"))) {
        lines.push(`Content-Length: ${Buffer.byteLength(of.body)}`, "", of.body);
      } else lines.push("", "");
      const text = lines.join("\r\n");
      return { text, method: of.method, target, secrets: [of.marker] };
    });
}

/** Follows whatever was damaged, so that its head ends in any case and the connection with it. */
const LAST = "\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/** A good request with some of its bytes changed, taken out or put in. */
export function damagedRequest(key: string): fc.Arbitrary<Buffer> {
  const good = Buffer.from(`GET /api/v1/rounds?limit=3 HTTP/1.1\r\nHost: a\r\nX-Api-Key: ${key}\r\n\r\n`);
  const change = fc.record({
    at: fc.nat(good.length),
    remove: fc.nat(3),
    put: fc.oneof(
      fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)),
      fc.constantFrom("\r\n", "\r\n\r\n", " ", ":", "\0", "HTTP/2.0", "?", "%").map(bytesOf),
    ),
  });
  return fc
    .array(change, { minLength: 1, maxLength: 3 })
    .map((changes) =>
      changes.reduce(
        (bytes, { at, remove, put }) => Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + remove)]),
        good,
      ),
    )
    .map((bytes) => Buffer.concat([bytes, Buffer.from(LAST)]));
}

/** Control characters end a header, or the whole request. */
function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, "_");
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text);
}

/** encodeURIComponent refuses what is no text: halves of pairs. */
function encodeWhatCanBe(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}
