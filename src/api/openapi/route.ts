import type { Express } from "express";
import { etagOf, isNamed } from "../../http/etag.ts";
import { sendJson } from "../../http/request.ts";
import { resource } from "../../http/resource.ts";
import { openApiDocument } from "./document.ts";

/** The path of the document, the only one that pages of other sites may read. */
const OPENAPI_PATH = "/openapi.json";

/** Adds the document; it needs no key. */
export function addOpenApi(app: Express, { site, version }: { site: () => string; version: string }): void {
  const current = keepText(site, version);
  resource(app, OPENAPI_PATH, (request, response) => {
    const { json, etag } = current();
    response.setHeader("ETag", etag);
    response.setHeader("Access-Control-Allow-Origin", "*");
    response.setHeader("Cross-Origin-Resource-Policy", "cross-origin");
    if (isNamed(request.get("if-none-match"), etag.slice(2))) response.status(304).end();
    else sendJson(response, 200, json);
  });
}

/** The public address is known once the server listens, so the text is made at the first request. */
function keepText(site: () => string, version: string): () => { json: string; etag: string } {
  let kept: { site: string; json: string; etag: string } | null = null;
  return () => {
    if (kept?.site !== site()) {
      const json = JSON.stringify(openApiDocument({ site: site(), version }));
      kept = { site: site(), json, etag: `W/${etagOf([json])}` }; // weak, since the middleware compresses below it
    }
    return kept;
  };
}
