import type { RequestListener } from "node:http";
import type { Express } from "express";
import { boundReads } from "../db/reads.ts";
import { navOf, openPages, requireSignIn } from "../frame/pages.ts";
import { PAGE_READS } from "../frame/routes.ts";
import type { Surface } from "../frame/view.ts";
import type { ConsoleAction, ConsolePage, ConsoleParts } from "./contract.ts";
import { addStepUp } from "../frame/sign-in/step-up.ts";
import { SECURITY } from "./security/path.ts";
import { addRoutes, requirementOf } from "./routes.ts";
import { findSignedIn, type Guard, requireSignedIn, type RouteParts, setSignedIn } from "./signed-in.ts";

const SURFACE: Surface = {
  base: "/console",
  folder: "console",
  away: "Our database does not respond, so nothing can be looked up or changed here now. Calls with your keys cannot be counted meanwhile, so they get temporarily_unavailable (503) and cost nothing. Nothing that you did before is lost. Try again in a moment.",
};

/** Parts of `/console`. */
export interface ConsoleOptions {
  parts: ConsoleParts;
  guard: Guard;
  pages: readonly ConsolePage[];
  actions: readonly ConsoleAction[];
  /** Adds routes that need no sign-in: sign-up, sign-in, password reset. */
  addPublicRoutes(app: Express, made: RouteParts): void;
  /** Adds routes of holders for themselves: their sign-in and the terms. */
  addAccountRoutes(app: Express, made: RouteParts): void;
  trustedProxies: readonly string[];
  /** Whether the public address is https. */
  isSecure: boolean;
}

/**
 * The request listener of `/console`, where holders manage their accounts. All routes require a sign-in, except
 * those of `addPublicRoutes`.
 */
export function openConsole(options: ConsoleOptions): RequestListener {
  const { parts, guard, pages, actions, trustedProxies, isSecure } = options;
  return openPages({
    surface: SURFACE,
    nav: [...navOf("/console", pages), { label: "Security", href: SECURITY, group: "Settings" }],
    visitorOf: (response) => findSignedIn(response),
    trustedProxies,
    isSecure,
    site: parts.site,
    sql: parts.sql,
    log: parts.log,
    fill(app, responder) {
      const made = { parts, responder, guard, reads: boundReads(parts.sql, PAGE_READS) };
      options.addPublicRoutes(app, made);
      app.use(
        requireSignIn("/console", async (request, reply) => {
          const who = await guard.whoIs(request, reply.locals.requestId);
          setSignedIn(reply, who);
          return who !== null;
        }),
      );
      addStepUp(app, {
        responder,
        actions,
        requirementOf: (action, response) => requirementOf(action, requireSignedIn(response)),
        confirm: (response, given) => guard.confirm(requireSignedIn(response), given),
      });
      options.addAccountRoutes(app, made);
      addRoutes(app, { pages, actions }, made);
    },
  });
}
