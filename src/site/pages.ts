import { readFileSync } from "node:fs";
import type { Express, Response } from "express";
import type { Memory } from "../api/memory.ts";
import { asked } from "../api/request.ts";
import { resource } from "../api/resource.ts";
import type { ListedPlan } from "../callers/plan-store.ts";
import { SCRIPT, STYLE } from "../frame/assets.ts";
import { docsPage } from "./docs-page.ts";
import { knowPlans } from "./docs-plans.ts";
import { errorsPage } from "./errors-page.ts";
import { homePage } from "./home.ts";

/** Adds the pages for people: plain HTML made here, without a script, a cookie, or anything from elsewhere. */
export function addPages(
  app: Express,
  {
    memory,
    version,
    site,
    plans,
  }: { memory: Memory; version: string; site: () => string; plans: () => Promise<ListedPlan[]> },
): void {
  const errors = errorsPage();
  const knownPlans = knowPlans(plans);
  let docs: ReturnType<typeof docsPage> | undefined; // our own address is known once we listen
  resource(app, "/", (_, response) => send(response, "text/html", homePage({ memory, version, site: site() })));
  resource(app, "/docs", async (_, response) => {
    docs ??= docsPage({ site: site(), version });
    send(response, "text/html", docs(await knownPlans()));
  });
  resource(app, "/docs/errors", (_, response) => send(response, "text/html", errors));
  for (const { path, type, text } of [STYLE, SCRIPT]) {
    resource(app, path, (request, response) => {
      const isNamed = asked(request).query.has("v");
      response.setHeader("Cache-Control", `public, max-age=${isNamed ? "31536000, immutable" : "60"}`);
      response.setHeader("Content-Type", type);
      response.end(text);
    });
  }
  addAsset(app, "site.css", "text/css");
  addAsset(app, "icon.svg", "image/svg+xml");
}

function addAsset(app: Express, name: string, type: string): void {
  const text = readFileSync(new URL(name, import.meta.url), "utf8");
  resource(app, `/${name}`, (_, response) => {
    response.setHeader("Cache-Control", "public, max-age=3600");
    send(response, type, text);
  });
}

function send(response: Response, type: string, text: string): void {
  response.setHeader("Content-Type", `${type}; charset=utf-8`);
  response.end(text);
}
