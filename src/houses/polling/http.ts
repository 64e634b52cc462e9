import { promisify } from "node:util";
import { brotliDecompress, constants, gunzip, inflate, inflateRaw, zstdDecompress } from "node:zlib";
import { Agent, errors, request as send, type Dispatcher } from "undici";
import { startDeadline } from "../../abort.ts";
import { codeOf, reasonOf } from "../../errors.ts";
import type { FailureReason, HouseResponse, HouseClient, HouseRequest } from "./client.ts";
import { excerpt } from "../reading/excerpt.ts";
import { guardedLookup, RefusedAddressError, refuseUrl, type Resolve } from "./guard.ts";
import { resolveByMachine } from "./machine-names.ts";
import { resolveWith } from "./name-servers.ts";
import { parseRetryAfter } from "./retry-after.ts";

/** No house lists rounds in more: 50 rounds are 5 to 20 kB. Applies to compressed and decompressed sizes. */
export const LARGEST_BODY = 4 << 20;
/** The most connections of a process to one house; further requests wait for a free one. */
export const CONNECTIONS_OF_HOUSE = 8;
/** The most of an unwanted body that is read to keep its connection. */
const WORTH_READING = 64 << 10;
const CONNECT_TIMEOUT_MS = 2_000;
/** Zstandard's own recommendation for what a receiver should take (RFC 8878, 3.1.1.1.2): 8 MiB of window. */
const ZSTD_WINDOW_LOG = 23;
/** Encodings in one header; more than two are an attack. */
const MOST_ENCODINGS = 2;
/** A Last-Modified counts whole seconds: younger ones may be of a body that changed again within the second. */
const SETTLED_MS = 2_000;

/**
 * The HTTP client for houses.
 *
 * One keep-alive agent per house, at most eight connections each, no retry and no redirect: the next poll is the retry, and
 * a moved house needs a change of configuration. `timeoutMs` of a request bounds all of it, from the name lookup to the
 * last byte. Every outcome is a value; its text never contains a header, a path or a body. Names are resolved by
 * `nameServers` if given, else by the machine.
 */
export function createHouseClient(options: { version: string; nameServers?: readonly string[] }): HouseClient {
  const { nameServers = [] } = options;
  const resolve = nameServers.length === 0 ? resolveByMachine() : resolveWith(nameServers);
  const agents = new Map<string, Agent>();
  const agentOf = ({ house, allowPrivate }: HouseRequest): Agent => {
    const name = `${house} ${allowPrivate ? "private" : "public"}`;
    const agent = agents.get(name) ?? createAgent(allowPrivate, resolve);
    agents.set(name, agent);
    return agent;
  };
  return {
    fetch: (request, signal) => fetchOnce(agentOf(request), request, signal, ownName(options.version)),
    async close() {
      const open = [...agents.values()];
      agents.clear();
      await Promise.all(open.map((agent) => agent.destroy()));
    },
  };
}

/** The default `user_agent`. */
export function ownName(version: string): string {
  return `roundhouse/${version}`;
}

function createAgent(allowPrivate: boolean, resolve: Resolve): Agent {
  const lookup = allowPrivate ? guardedLookup(resolve, () => true) : guardedLookup(resolve);
  return new Agent({
    connections: CONNECTIONS_OF_HOUSE,
    pipelining: 1,
    allowH2: false, // so that the limits here, made for HTTP/1.1, hold
    keepAliveTimeout: 10_000,
    keepAliveMaxTimeout: 60_000,
    maxResponseSize: LARGEST_BODY,
    maxHeaderSize: 16_384,
    connect: { timeout: CONNECT_TIMEOUT_MS, lookup },
  });
}

async function fetchOnce(
  agent: Agent,
  request: HouseRequest,
  signal: AbortSignal,
  userAgent: string,
): Promise<HouseResponse> {
  const startedAt = performance.now();
  const elapsedMs = () => Math.round(performance.now() - startedAt);
  const fail = (reason: FailureReason, detail: string, status: number | null = null): HouseResponse => {
    return { kind: "failed", status, reason, detail, retryAfterMs: null, elapsedMs: elapsedMs() };
  };
  const url = new URL(request.url); // names are checked by the agent's lookup
  const refused = refuseUrl(url, request.allowPrivate);
  if (refused !== null) return fail("refused_address", `${url.host}: ${refused}`);
  const deadline = startDeadline(signal, request.timeoutMs);
  let status: number | null = null;
  try {
    const response = await send(url, {
      dispatcher: agent,
      method: request.method,
      headers: headersOf(request, userAgent),
      body: request.body ?? null,
      signal: deadline.signal,
      headersTimeout: 0, // the deadline is for both
      bodyTimeout: 0,
    });
    status = response.statusCode;
    if (status !== 200) {
      // the status is enough; an incomplete body changes nothing
      await response.body.dump({ limit: WORTH_READING, signal: deadline.signal }).catch(() => undefined);
      if (signal.aborted) return fail("aborted", "stopped before the response was complete", status);
      if (status === 304 && isConditional(request)) return { kind: "unchanged", status, elapsedMs: elapsedMs() };
      if (status === 404 && request.mayBeAbsent === true) return { kind: "absent", status, elapsedMs: elapsedMs() };
      return badStatus(response, elapsedMs());
    }
    const header = (name: string) => oneHeader(response, name);
    const sent = Buffer.from(await response.body.arrayBuffer()); // the agent's maxResponseSize ends it
    const body = await unpack(sent, header("content-encoding"));
    return {
      kind: "response",
      status,
      contentType: header("content-type"),
      etag: header("etag"),
      lastModified: settledLastModified(header("last-modified"), header("date")),
      body,
      elapsedMs: elapsedMs(),
      headers: diagnosticHeaders(response),
    };
  } catch (error) {
    if (signal.aborted) return fail("aborted", "stopped before the response was complete", status);
    if (deadline.isLate()) return fail("timeout", `no complete response within ${request.timeoutMs} ms`, status);
    return fail(...explain(error, request), status);
  } finally {
    deadline.end();
  }
}

/** Our headers come first; a configured header with the same name, in any case, replaces ours. */
function headersOf(request: HouseRequest, userAgent: string): Record<string, string> {
  const given = Object.entries(request.headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return {
    "user-agent": userAgent,
    accept: "application/json",
    "accept-encoding": "gzip, br, zstd, deflate",
    ...Object.fromEntries(given),
  };
}

function isConditional({ headers }: HouseRequest): boolean {
  return Object.keys(headers).some((name) => /^if-(none-match|modified-since)$/i.test(name));
}

function badStatus(response: Dispatcher.ResponseData, elapsedMs: number): HouseResponse {
  const { statusCode: status } = response;
  const location = oneHeader(response, "location");
  const failed = {
    kind: "failed",
    status,
    retryAfterMs: null,
    elapsedMs,
    headers: diagnosticHeaders(response),
  } as const;
  if (status >= 300 && status < 400 && location !== null) {
    const place = placeOf(location);
    const advice = /log-?in|sign-?in|auth|session|captcha|challenge/i.test(place)
      ? "the house requires a session: set the headers it needs under `headers`, or base_url if it moved"
      : "redirects are not followed: set base_url and feed.path to where the house is now";
    const detail = `status ${status}, a redirect to ${place}; ${advice}`;
    return { ...failed, reason: "redirect", detail };
  }
  const asksToWait = status === 429 || status === 503;
  const retryAfterMs = asksToWait
    ? parseRetryAfter(oneHeader(response, "retry-after"), oneHeader(response, "date"), Date.now())
    : null;
  const wait = retryAfterMs === null ? "" : `, retry after ${Math.round(retryAfterMs / 1000)} s`;
  const advice =
    status === 401 || status === 403
      ? ": the house refused the request; it requires a session in `headers`, or blocks programs"
      : "";
  return {
    ...failed,
    reason: "status",
    detail: `returned status ${status}${wait}; expected 200${advice}`,
    retryAfterMs,
  };
}

/** The target of a redirect, without its query, which may repeat what we sent. */
function placeOf(location: string): string {
  return excerpt(location.replace(/[?#].*$/s, "").replace(/\/\/[^/]*@/, "//"), 200);
}

/** Decodes the encodings, the last one first; each step may return at most 4 MiB. */
async function unpack(body: Buffer, header: string | null): Promise<Buffer> {
  const encodings = (header ?? "")
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "" && name !== "identity");
  if (encodings.length > MOST_ENCODINGS) {
    throw new UndecodableError(`expected at most ${MOST_ENCODINGS} content encodings, found ${encodings.length}`);
  }
  let unpacked = body;
  for (const name of encodings.toReversed()) unpacked = await unpackOnce(unpacked, name);
  return unpacked;
}

async function unpackOnce(body: Buffer, encoding: string): Promise<Buffer> {
  const limit = { maxOutputLength: LARGEST_BODY };
  switch (encoding) {
    case "gzip":
    case "x-gzip":
      return promisify(gunzip)(body, limit);
    case "deflate":
      // some servers send the bare stream; the header of the right one has method 8 in its low four bits
      return ((body[0] ?? 0) & 0x0f) === 8 ? promisify(inflate)(body, limit) : promisify(inflateRaw)(body, limit);
    case "br":
      return promisify(brotliDecompress)(body, limit);
    case "zstd":
      return promisify(zstdDecompress)(body, {
        ...limit,
        params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG },
      });
    default:
      throw new UndecodableError(`the content encoding ${excerpt(encoding, 20)} is unknown`);
  }
}

class UndecodableError extends Error {
  override name = "UndecodableError";
}

/**
 * A Last-Modified that may be sent back (RFC 9110, 8.8.2.2), or null: it has whole seconds, so one as recent as the
 * response could hide a round that was added later in the same second.
 */
function settledLastModified(lastModified: string | null, date: string | null): string | null {
  const age = Date.parse(date ?? "") - Date.parse(lastModified ?? "");
  return age >= SETTLED_MS ? lastModified : null;
}

const FAILURES: Readonly<Record<string, FailureReason>> = {
  UND_ERR_CONNECT_TIMEOUT: "timeout",
  UND_ERR_RES_EXCEEDED_MAX_SIZE: "too_large",
  UND_ERR_HEADERS_OVERFLOW: "too_large",
  ERR_BUFFER_TOO_LARGE: "too_large",
};

function explain(error: unknown, request: HouseRequest): [reason: FailureReason, detail: string] {
  const { host } = new URL(request.url);
  if (error instanceof RefusedAddressError) return ["refused_address", `${host}: ${error.message}`];
  if (error instanceof UndecodableError) return ["not_decodable", error.message];
  const code = codeOf(error);
  const reason = FAILURES[code];
  if (reason === "too_large") {
    return code === "UND_ERR_HEADERS_OVERFLOW"
      ? [reason, "expected at most 16 KiB of headers, found more"]
      : [reason, "expected at most 4 MiB, also decompressed, found more"];
  }
  if (reason === "timeout") return [reason, `${host} did not connect in time`];
  if (/^(Z_|ERR_BROTLI|ERR__ERROR_FORMAT|ERR_.*ZSTD|ZSTD_|ERR_PADDING)/.test(code)) {
    return ["not_decodable", `the body cannot be decompressed (${code})`];
  }
  if (error instanceof errors.InvalidArgumentError) {
    return ["connection", `the request to ${host} cannot be sent: ${withoutSecrets(error.message, request)}`];
  }
  const text = withoutSecrets(reasonOf(error), request);
  return ["connection", text.includes(host) ? text : `${host}: ${text}`];
}

/** The runtime's error text, redacted in case it repeats what we sent. */
function withoutSecrets(text: string, { headers, url }: HouseRequest): string {
  const { pathname, search } = new URL(url);
  const secrets = [...Object.values(headers), pathname + search, search].filter((secret) => secret.length >= 4);
  return excerpt(
    secrets.reduce((rest, secret) => rest.replaceAll(secret, "[redacted]"), text),
    200,
  );
}

/** The headers an operator needs first: caching, limits, and proxies in front of the house. */
const DIAGNOSTIC_HEADERS =
  /^(?:content-encoding|cache-control|age|retry-after|server|via|ratelimit(?:-[a-z]+)?|x-ratelimit-[a-z-]+)$/;

function diagnosticHeaders(response: Dispatcher.ResponseData): Record<string, string> {
  return Object.fromEntries(
    Object.keys(response.headers)
      .filter((name) => DIAGNOSTIC_HEADERS.test(name))
      .map((name) => [name, excerpt(oneHeader(response, name) ?? "", 200)]),
  );
}

function oneHeader(response: Dispatcher.ResponseData, name: string): string | null {
  const value = response.headers[name];
  const text = Array.isArray(value) ? value[0] : value;
  return text === undefined || text === "" ? null : text;
}
