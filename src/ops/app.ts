import type { RequestListener } from "node:http";
import compression from "compression";
import express, { type Express, type RequestHandler } from "express";
import { type NavEntry, writeAnswers } from "../frame/answer.ts";
import type { OpsAction, OpsMount, OpsPage, OpsParts } from "./contract.ts";
import { isFromHere } from "../frame/cross-origin.ts";
import { PageError } from "../frame/errors.ts";
import { addRoutes, type RouteParts } from "./routes.ts";
import { answerTrouble } from "../frame/trouble.ts";
import type { PageReply, Surface } from "../frame/shown.ts";
import { type Doorkeeper, remember, whoAsks } from "./who.ts";

/** Everything is ours: no inline script or style, nothing from elsewhere, in nobody's frame. `data:` is for QR codes. */
const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

const SURFACE: Surface = {
  base: "/ops",
  folder: "ops",
  away: "PostgreSQL does not answer, so nothing can be looked up or done here now. Callers still get answers from memory. Look at /readyz and at the log of PostgreSQL; this page works again by itself.",
};

/** What `/ops` is made of. */
export interface OpsOptions {
  parts: OpsParts;
  doorkeeper: Doorkeeper;
  pages: readonly OpsPage[];
  actions: readonly OpsAction[];
  mounts: readonly OpsMount[];
  /** Adds what is answered to people who are not signed in: the sign-in pages. */
  addDoors(app: Express, made: RouteParts): void;
  /** Adds what everybody does for themselves: their password, their sign-ins. */
  addOwn(app: Express, made: RouteParts): void;
  trustedProxies: readonly string[];
  /** Whether people reach us by https. */
  isSecure: boolean;
  /** The public address. */
  site(): string;
}

/**
 * The operators' view. Whatever is below `/ops` wants somebody who is signed in, except for the sign-in pages; what
 * changes something wants a request of our own pages, a role that may, and leaves an entry in the audit log.
 */
export function openOps(options: OpsOptions): RequestListener {
  const { parts, doorkeeper, pages, actions, mounts, isSecure } = options;
  const app = createApp(options.trustedProxies);
  const answers = writeAnswers({
    surface: SURFACE,
    nav: navOf([...pages, ...mounts]),
    isSecure,
    visitorOf: (response) => whoAsks(response)?.visitor ?? null,
  });
  const made = { parts, answers, doorkeeper };

  app.use((request, response, next) => {
    response.setHeader("Content-Security-Policy", CONTENT_POLICY);
    response.setHeader("Cache-Control", "no-store");
    response.setHeader("Vary", "Accept-Encoding, Cookie");
    // with none at all a browser says "Origin: null" with our own forms, and by plain http it says nothing else
    response.setHeader("Referrer-Policy", "same-origin");
    if (!isFromHere(request, options.site())) {
      throw new PageError(403, "this was sent from another site; open the page here and send its form");
    }
    next();
  });
  options.addDoors(app, made);

  app.use(async (request, response, next) => {
    const { requestId } = (response as PageReply).locals;
    const who = await doorkeeper.whoIs(request, requestId);
    if (who !== null) {
      remember(response, who);
      return next();
    }
    const isLooking = request.method === "GET" || request.method === "HEAD";
    if (!isLooking) throw new PageError(401, "you are not signed in, or no longer; sign in and do this again");
    const to = request.originalUrl === "/ops" ? "" : `?to=${encodeURIComponent(request.originalUrl)}`;
    response.setHeader("Location", `/ops/sign-in${to}`);
    response.status(302).end();
  });
  options.addOwn(app, made);
  addRoutes(app, { pages, actions }, made);
  for (const mount of mounts) app.use(`/ops${mount.path}`, onlyLooking, mount.open(parts));
  if (!pages.some(({ path }) => path === "/")) app.get("/ops", (_, response) => response.redirect(302, "/ops/me"));
  app.use(() => {
    throw new PageError(404, "there is nothing under this address");
  });
  app.use(answerTrouble(answers, parts.sql, parts.log));
  return app;
}

/** What others made is looked at alone: whatever changes something is an action of ours. */
const onlyLooking: RequestHandler = (request, _, next) => {
  if (request.method !== "GET" && request.method !== "HEAD") {
    throw new PageError(405, "this is for looking alone", { Allow: "GET, HEAD" });
  }
  next();
};

function createApp(trustedProxies: readonly string[]): Express {
  const app = express();
  app.set("trust proxy", [...trustedProxies]);
  app.disable("x-powered-by");
  app.disable("etag");
  app.set("query parser", false); // see typed
  app.enable("case sensitive routing");
  app.use(compression({ threshold: 1_024 }));
  return app;
}

function navOf(places: readonly (OpsPage | OpsMount)[]): NavEntry[] {
  return places
    .flatMap(({ nav, path }) => (nav === undefined ? [] : [{ ...nav, href: path === "/" ? "/ops" : `/ops${path}` }]))
    .toSorted((a, b) => a.order - b.order);
}
