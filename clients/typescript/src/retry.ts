import { ConnectionError } from "./errors.ts";
import type { Wait } from "./wait.ts";

/** What a client needs of `fetch`. */
export type Fetch = (request: Request) => Promise<Response>;

/** How often and how long a call is tried. */
export interface RetryOptions {
  fetch: Fetch;
  /** Attempts in all, the first one included. */
  attempts: number;
  /** A longer wait is not waited for: the error is thrown, with the seconds in it. */
  longestWaitSeconds: number;
  /** Deadline of one attempt. */
  timeoutSeconds: number;
  wait: Wait;
}

const RETRIED = [429, 502, 503, 504];
const REDIRECTS = [301, 302, 303, 307, 308];

/** What prevented a response, with its status and headers if only the body is missing. */
interface Failure {
  reason: unknown;
  head: Response | null;
}

/**
 * A `fetch` that repeats a GET after 429, 502, 503, 504 and broken connections: after `Retry-After` if the response has
 * it, else after 0.5 s, 1 s, 2 s … It returns a response once its whole body arrived. It follows no redirect: `fetch` would
 * send the key to any host.
 * @throws ConnectionError if the last attempt has no response, or no whole one, or if the response is a redirect
 */
export function retrying(options: RetryOptions): Fetch {
  return async (request) => {
    for (let attempt = 1; ; attempt++) {
      const result = await attemptOnce(request, options);
      const seconds = waitAfter(result, attempt);
      if (seconds === null || seconds > options.longestWaitSeconds || attempt >= options.attempts) {
        if (result instanceof Response) return requireNoRedirect(request, result);
        throw connectionErrorOf(request, result);
      }
      await options.wait(seconds, request.signal);
    }
  };
}

/** A whole response or what prevented it. A caller's own abort is thrown: it is not a failure to try again. */
async function attemptOnce(request: Request, { fetch, timeoutSeconds }: RetryOptions): Promise<Response | Failure> {
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutSeconds * 1_000)]);
  let head: Response | null = null;
  try {
    head = await fetch(new Request(request.clone(), { signal, redirect: "manual" }));
    const { status, statusText, headers } = head;
    const body = await head.arrayBuffer();
    // a 304 must have no body, not even an empty one
    return new Response(body.byteLength === 0 ? null : body, { status, statusText, headers });
  } catch (reason) {
    request.signal.throwIfAborted();
    return { reason, head };
  }
}

/** Seconds to wait before the next attempt; null if another attempt cannot help. */
function waitAfter(result: Response | Failure, attempt: number): number | null {
  const backoff = 2 ** (attempt - 2);
  const head = result instanceof Response ? result : result.head;
  if (head !== null && RETRIED.includes(head.status)) return retryAfter(head) ?? backoff;
  return result instanceof Response ? null : backoff;
}

function requireNoRedirect(request: Request, response: Response): Response {
  const location = response.headers.get("Location");
  if (location === null || !REDIRECTS.includes(response.status)) return response;
  const target = URL.canParse(location, request.url) ? new URL(location, request.url).href : location;
  throw new ConnectionError(
    `expected a response of ${new URL(request.url).origin}, got a redirect to ${target}, to which the key is not sent: ` +
      "if that is the address of the API, use it as `url`",
  );
}

function connectionErrorOf(request: Request, { reason, head }: Failure): ConnectionError {
  const { origin } = new URL(request.url);
  const problem = head === null ? `no response from ${origin}` : `the response of ${origin} broke off`;
  return new ConnectionError(`${problem}: ${reasonOf(reason)}`, { cause: reason });
}

/** The seconds in `Retry-After`, which is a number or a date; null without one that can be read. */
export function retryAfter(response: Response): number | null {
  const text = response.headers.get("Retry-After");
  if (text === null) return null;
  if (/^\d+$/.test(text)) return Number(text);
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : Math.max(0, Math.ceil((date - Date.now()) / 1_000));
}

/** The innermost cause has the reason: `fetch failed` alone does not help. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message;
}
