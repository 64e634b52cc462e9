import type { RequestListener } from "node:http";
import compression from "compression";
import express, { type Express, type RequestHandler } from "express";
import { type NavEntry, writeAnswers } from "./answer.ts";
import { type Asset, SCRIPT, STYLE } from "./assets.ts";
import type { OpsAction, OpsMount, OpsPage, OpsParts } from "./contract.ts";
import { isFromHere } from "./cross-origin.ts";
import { OpsError } from "./errors.ts";
import { addRoutes, type RouteParts } from "./routes.ts";
import { answerTrouble } from "./trouble.ts";
import { type Doorkeeper, type OpsReply, remember } from "./who.ts";

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
  const answers = writeAnswers({ nav: navOf([...pages, ...mounts]), isSecure });
  const made = { parts, answers, doorkeeper };

  app.use((request, response, next) => {
    response.setHeader("Content-Security-Policy", CONTENT_POLICY);
    response.setHeader("Cache-Control", "no-store");
    response.setHeader("Vary", "Accept-Encoding, Cookie");
    // with none at all a browser says "Origin: null" with our own forms, and by plain http it says nothing else
    response.setHeader("Referrer-Policy", "same-origin");
    if (!isFromHere(request, options.site())) {
      throw new OpsError(403, "this was sent from another site; open the page here and send its form");
    }
    next();
  });
  for (const asset of [STYLE, SCRIPT]) addAsset(app, asset);
  options.addDoors(app, made);

  app.use(async (request, response, next) => {
    const { requestId } = (response as OpsReply).locals;
    const who = await doorkeeper.whoIs(request, requestId);
    if (who !== null) {
      remember(response, who);
      return next();
    }
    const isLooking = request.method === "GET" || request.method === "HEAD";
    if (!isLooking) throw new OpsError(401, "you are not signed in, or no longer; sign in and do this again");
    const to = request.originalUrl === "/ops" ? "" : `?to=${encodeURIComponent(request.originalUrl)}`;
    response.setHeader("Location", `/ops/sign-in${to}`);
    response.status(302).end();
  });
  options.addOwn(app, made);
  addRoutes(app, { pages, actions }, made);
  for (const mount of mounts) app.use(`/ops${mount.path}`, onlyLooking, mount.open(parts));
  if (!pages.some(({ path }) => path === "/")) app.get("/ops", (_, response) => response.redirect(302, "/ops/me"));
  app.use(() => {
    throw new OpsError(404, "there is nothing under this address");
  });
  app.use(answerTrouble(answers, parts.sql, parts.log));
  return app;
}

/** What others made is looked at alone: whatever changes something is an action of ours. */
const onlyLooking: RequestHandler = (request, _, next) => {
  if (request.method !== "GET" && request.method !== "HEAD") {
    throw new OpsError(405, "this is for looking alone", { Allow: "GET, HEAD" });
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

function addAsset(app: Express, { path, type, text }: Asset): void {
  app.get(path, (request, response) => {
    const isNamed = request.originalUrl.includes("?v=");
    response.setHeader("Cache-Control", `public, max-age=${isNamed ? "31536000, immutable" : "60"}`);
    response.setHeader("Content-Type", type);
    response.end(text);
  });
}

function navOf(places: readonly (OpsPage | OpsMount)[]): NavEntry[] {
  return places
    .flatMap(({ nav, path }) => (nav === undefined ? [] : [{ ...nav, href: path === "/" ? "/ops" : `/ops${path}` }]))
    .toSorted((a, b) => a.order - b.order);
}
