import type { RequestListener } from "node:http";
import type { Express } from "express";
import { boundReads } from "../db/reads.ts";
import { navOf, openPages, requireSignIn } from "../frame/pages.ts";
import { PAGE_READS } from "../frame/routes.ts";
import type { Surface } from "../frame/view.ts";
import type { OpsAction, OpsPage, OpsParts } from "./contract.ts";
import { actionAt, addStepUp } from "../frame/sign-in/step-up.ts";
import { addRoutes, requirementOf, type RouteParts } from "./routes.ts";
import { findSignedIn, type Guard, requireSignedIn, setSignedIn } from "./signed-in.ts";

const SURFACE: Surface = {
  base: "/ops",
  folder: "ops",
  away: "PostgreSQL does not respond, so these pages show and change nothing now. Calls cannot be counted, so callers get temporarily_unavailable (503). Check /readyz and the log of PostgreSQL. This page works again when PostgreSQL responds.",
};

/** What `/ops` needs. */
export interface OpsOptions {
  parts: OpsParts;
  guard: Guard;
  pages: readonly OpsPage[];
  actions: readonly OpsAction[];
  /** Adds the routes for people who are not signed in: the sign-in pages. */
  addPublicRoutes(app: Express, made: RouteParts): void;
  /** Adds the routes of the current account: its password, its sign-ins. */
  addAccountRoutes(app: Express, made: RouteParts): void;
  trustedProxies: readonly string[];
  /** Whether the public address uses https. */
  isSecure: boolean;
  /** The public address. */
  site: () => string;
}

/**
 * Serves `/ops`. Everything below it requires a sign-in, except for the sign-in pages. An action requires a form of our own
 * pages and a role that permits it, and adds an entry to the audit log.
 */
export function openOps(options: OpsOptions): RequestListener {
  const { parts, guard, pages, actions, trustedProxies, isSecure, site } = options;
  return openPages({
    surface: SURFACE,
    nav: navOf("/ops", pages),
    visitorOf: (response) => findSignedIn(response)?.visitor ?? null,
    trustedProxies,
    isSecure,
    site,
    sql: parts.sql,
    log: parts.log,
    fill(app, responder) {
      const made = { parts, responder, guard, reads: boundReads(parts.sql, PAGE_READS) };
      options.addPublicRoutes(app, made);
      app.use(
        requireSignIn(
          "/ops",
          async (request, reply) => {
            const who = await guard.whoIs(request, reply.locals.requestId);
            setSignedIn(reply, who);
            return who !== null;
          },
          ({ path }) => actionAt(actions, path.slice("/ops".length))?.file?.maxBytes ?? 0,
        ),
      );
      addStepUp(app, {
        responder,
        actions,
        requirementOf: (action, response) => requirementOf(action, requireSignedIn(response)),
        confirm: (response, given) => guard.confirm(requireSignedIn(response), given),
      });
      options.addAccountRoutes(app, made);
      addRoutes(app, { pages, actions }, made);
      if (!pages.some(({ path }) => path === "/")) app.get("/ops", (_, response) => response.redirect(302, "/ops/me"));
    },
  });
}
