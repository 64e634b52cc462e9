import type { Middleware } from "openapi-fetch";

/** A whole response and its ETag. */
interface Kept {
  etag: string;
  headers: Headers;
  body: ArrayBuffer;
}

/**
 * Keeps the last response to each URL and sends its `ETag`: if nothing changed, the API returns 304, which costs no
 * quota, and the caller gets the kept response.
 * @param size how many responses are kept; the one used longest ago is dropped first
 */
export function etagCache(size: number): Middleware {
  const kept = new Map<string, Kept>();
  /** The kept response whose ETag a request was sent with; another response may evict it before the 304 arrives. */
  const sent = new WeakMap<Request, Kept>();
  return {
    onRequest({ request }) {
      const known = kept.get(request.url);
      if (known !== undefined) {
        request.headers.set("If-None-Match", known.etag);
        sent.set(request, known);
      }
      return request;
    },
    async onResponse({ request, response }) {
      const known = sent.get(request);
      const etag = response.headers.get("ETag");
      if (response.status === 304 && known !== undefined) {
        keep(request.url, kept.get(request.url) ?? known);
        return new Response(known.body, { headers: known.headers });
      }
      if (response.status === 200 && etag !== null) {
        const body = await response.clone().arrayBuffer();
        if (isJson(body)) keep(request.url, { etag, headers: response.headers, body });
      }
      return undefined;
    },
  };

  function keep(url: string, entry: Kept): void {
    kept.delete(url); // a Map lists its keys in the order of insertion
    kept.set(url, entry);
    const [oldest] = kept.keys();
    if (kept.size > size && oldest !== undefined) kept.delete(oldest);
  }
}

/** Whether a body is whole: a connection without a length can end early, and a 304 would then repeat the fault. */
function isJson(body: ArrayBuffer): boolean {
  try {
    JSON.parse(new TextDecoder().decode(body));
    return true;
  } catch {
    return false;
  }
}
