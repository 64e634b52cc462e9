import type { RequestListener } from "node:http";
import compression from "compression";
import express, { type Express, type Request, type RequestHandler } from "express";
import type { Sql } from "../db/client.ts";
import type { Log } from "../log.ts";
import { type Responder, createResponder } from "./responder.ts";
import { receiveForm } from "./body.ts";
import { isFromHere } from "./cross-origin.ts";
import { PageError } from "./errors.ts";
import type { NavEntry } from "./nav.ts";
import type { PageReply, Surface } from "./view.ts";
import { handleErrors } from "./problem-page.ts";

/** No inline script or style, nothing from other sites, no framing. `data:` is for QR codes. */
const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** What serving a surface needs. */
export interface PagesOptions {
  surface: Surface;
  nav: readonly NavEntry[];
  /** The person for the layout; null before sign-in. */
  visitorOf: (response: PageReply) => object | null;
  trustedProxies: readonly string[];
  /** Whether the public address uses https. */
  isSecure: boolean;
  /** The public address. */
  site: () => string;
  sql: Sql;
  log: Log;
  /** Adds the handlers, in the order in which they run. */
  fill(app: Express, responder: Responder): void;
}

/**
 * Serves the pages of a surface: with headers that block content from other sites and caching, with a check of the
 * origin of forms, and with error pages.
 */
export function openPages(options: PagesOptions): RequestListener {
  const { surface, nav, visitorOf, isSecure, site, sql, log } = options;
  const app = createApp(options.trustedProxies);
  const responder = createResponder({ surface, nav, isSecure, visitorOf });
  app.use((request, response, next) => {
    response.setHeader("Content-Security-Policy", CONTENT_POLICY);
    response.setHeader("Cache-Control", "no-store");
    response.setHeader("Vary", "Accept-Encoding, Cookie");
    // without a referrer a browser sends "Origin: null" with our own forms, and over plain http nothing else
    response.setHeader("Referrer-Policy", "same-origin");
    if (!isFromHere(request, site())) {
      throw new PageError(403, "this was sent from another site; open the page here and send its form");
    }
    next();
  });
  options.fill(app, responder);
  app.use(() => {
    throw new PageError(404, "there is nothing under this address");
  });
  app.use(handleErrors(responder, sql, log));
  return app;
}

/**
 * Requires a sign-in. A GET without one redirects to the sign-in page, which returns to the path; any other is refused.
 * Who sends a form is looked up again when all of it has arrived: a sender who holds it back must not act with a session
 * or role that was taken from them meanwhile.
 * @param isSignedIn returns whether a request has a session, and remembers it
 * @param largestFileOf the bytes of the file that the form of a request may have, 0 for none
 */
export function requireSignIn(
  base: string,
  isSignedIn: (request: Request, reply: PageReply) => Promise<boolean>,
  largestFileOf: (request: Request) => number = () => 0,
): RequestHandler {
  return async (request, response, next) => {
    const ask = () => isSignedIn(request, response as PageReply);
    let isIn = await ask();
    if (isIn && !isLooking(request)) {
      await receiveForm(request, largestFileOf(request));
      isIn = await ask();
    }
    if (isIn) return next();
    if (!isLooking(request)) throw new PageError(401, "you are not signed in, or no longer; sign in and do this again");
    const to = request.originalUrl === base ? "" : `?to=${encodeURIComponent(request.originalUrl)}`;
    response.setHeader("Location", `${base}/sign-in${to}`);
    response.status(302).end();
  };
}

/** Whether a request changes nothing. */
export function isLooking({ method }: Pick<Request, "method">): boolean {
  return method === "GET" || method === "HEAD";
}

/** The navigation of a surface: the entries of its pages, in their order. */
export function navOf(
  base: string,
  places: readonly {
    path: string;
    nav?: { label: string; order: number; group: string } | undefined;
    roles?: readonly string[];
  }[],
): NavEntry[] {
  return places
    .flatMap(({ nav, path, roles }) => {
      if (nav === undefined) return [];
      return [{ ...nav, href: path === "/" ? base : base + path, ...(roles && { roles }) }];
    })
    .toSorted((a, b) => a.order - b.order);
}

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
