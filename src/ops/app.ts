import type { RequestListener } from "node:http";
import type { Express } from "express";
import { boundReads } from "../db/reads.ts";
import { navOf, openPages, requireSignIn } from "../frame/pages.ts";
import { PAGE_READS } from "../frame/routes.ts";
import type { Surface } from "../frame/shown.ts";
import type { OpsAction, OpsPage, OpsParts } from "./contract.ts";
import { addRoutes, type RouteParts } from "./routes.ts";
import { type Doorkeeper, remember, whoAsks } from "./who.ts";

const SURFACE: Surface = {
  base: "/ops",
  folder: "ops",
  away: "PostgreSQL does not answer, so nothing can be looked up or done here now. Calls cannot be counted meanwhile, so callers are answered with temporarily_unavailable (503). Look at /readyz and at the log of PostgreSQL; this page works again by itself.",
};

/** What `/ops` is made of. */
export interface OpsOptions {
  parts: OpsParts;
  doorkeeper: Doorkeeper;
  pages: readonly OpsPage[];
  actions: readonly OpsAction[];
  /** Adds what is answered to people who are not signed in: the sign-in pages. */
  addDoors(app: Express, made: RouteParts): void;
  /** Adds what everybody does for themselves: their password, their sign-ins. */
  addOwn(app: Express, made: RouteParts): void;
  trustedProxies: readonly string[];
  /** Whether people reach us by https. */
  isSecure: boolean;
  /** The public address. */
  site: () => string;
}

/**
 * The operators' view. Whatever is below `/ops` wants somebody who is signed in, except for the sign-in pages; what
 * changes something wants a request of our own pages, a role that may, and leaves an entry in the audit log.
 */
export function openOps(options: OpsOptions): RequestListener {
  const { parts, doorkeeper, pages, actions, trustedProxies, isSecure, site } = options;
  return openPages({
    surface: SURFACE,
    nav: navOf("/ops", pages),
    visitorOf: (response) => whoAsks(response)?.visitor ?? null,
    trustedProxies,
    isSecure,
    site,
    sql: parts.sql,
    log: parts.log,
    fill(app, answers) {
      const made = { parts, answers, doorkeeper, reads: boundReads(parts.sql, PAGE_READS) };
      options.addDoors(app, made);
      app.use(
        requireSignIn("/ops", async (request, reply) => {
          const who = await doorkeeper.whoIs(request, reply.locals.requestId);
          if (who !== null) remember(reply, who);
          return who !== null;
        }),
      );
      options.addOwn(app, made);
      addRoutes(app, { pages, actions }, made);
      if (!pages.some(({ path }) => path === "/")) app.get("/ops", (_, response) => response.redirect(302, "/ops/me"));
    },
  });
}
