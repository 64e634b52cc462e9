import { readFileSync } from "node:fs";
import type { Express } from "express";
import { urlOf } from "../http/request.ts";
import { resource } from "../http/resource.ts";
import { type Asset, FONTS, SCRIPT, STYLE, scriptFile, scriptOf, styleOf } from "../frame/assets.ts";

const here = (file: string) => new URL(file, import.meta.url);

/** The stylesheet and the script of the public pages. */
export const SITE_STYLE: Asset = styleOf("/site.css", [here("site.css")]);
export const SITE_SCRIPT: Asset = scriptOf("/site.js", [
  scriptFile("refresh"),
  scriptFile("copy"),
  here("scripts/languages.js"),
  here("scripts/try.js"),
]);

/**
 * Adds styles, scripts, fonts and images. Those whose URL contains their own hash are cached for a year. During a rolling
 * upgrade a process is asked for hashes of another version; its response to them expires after a minute.
 */
export function addAssets(app: Express): void {
  for (const { path, type, body, url } of [STYLE, SCRIPT, SITE_STYLE, SITE_SCRIPT, ...FONTS]) {
    resource(app, path, (request, response) => {
      const isNamed = `${path}?${urlOf(request).query.toString()}` === url;
      response.setHeader("Cache-Control", `public, max-age=${isNamed ? "31536000, immutable" : "60"}`);
      response.setHeader("Content-Type", type);
      response.end(body);
    });
  }
  const image = readFileSync(here("og.png"));
  resource(app, "/og.png", (_, response) => {
    response.setHeader("Cache-Control", "public, max-age=86400");
    response.setHeader("Content-Type", "image/png");
    response.end(image);
  });
  const icon = readFileSync(here("icon.svg"), "utf8");
  resource(app, "/icon.svg", (_, response) => {
    response.setHeader("Cache-Control", "public, max-age=3600");
    response.setHeader("Content-Type", "image/svg+xml; charset=utf-8");
    response.end(icon);
  });
}
