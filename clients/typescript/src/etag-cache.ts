import type { Middleware } from "openapi-fetch";

/**
 * Keeps the last response to each URL and sends its `ETag`: if nothing changed, the API returns 304, which costs no
 * quota, and the caller gets the kept response.
 * @param size how many responses are kept; the one used longest ago is dropped first
 */
export function etagCache(size: number): Middleware {
  const kept = new Map<string, { etag: string; response: Response }>();
  return {
    onRequest({ request }) {
      const known = kept.get(request.url);
      if (known !== undefined) request.headers.set("If-None-Match", known.etag);
      return request;
    },
    onResponse({ request, response }) {
      const known = kept.get(request.url);
      const etag = response.headers.get("ETag");
      if (response.status === 304 && known !== undefined) {
        keep(request.url, known);
        return known.response.clone();
      }
      if (response.status === 200 && etag !== null) keep(request.url, { etag, response: response.clone() });
      return undefined;
    },
  };

  function keep(url: string, entry: { etag: string; response: Response }): void {
    kept.delete(url); // a Map lists its keys in the order of insertion
    kept.set(url, entry);
    const [oldest] = kept.keys();
    if (kept.size > size && oldest !== undefined) kept.delete(oldest);
  }
}
