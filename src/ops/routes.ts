import type { Express, RequestHandler } from "express";
import { clientGone } from "../http/client-gone.ts";
import type { Reads } from "../db/reads.ts";
import type { Responder } from "../frame/responder.ts";
import { PageError } from "../frame/errors.ts";
import { addRoutes as addTo, showPage } from "../frame/routes.ts";
import type { PageReply } from "../frame/view.ts";
import type { OpsAction, OpsPage, OpsParts, Role } from "./contract.ts";
import { act } from "../frame/sign-in/act.ts";
import type { Requirement } from "../frame/sign-in/step-up.ts";
import { type Guard, requireSignedIn, type SignedIn } from "./signed-in.ts";

/** What routes are made of. */
export interface RouteParts {
  parts: OpsParts;
  responder: Responder;
  guard: Guard;
  /** Runs what a page reads, until its client is gone. */
  reads: Reads;
}

/** Adds pages and actions below `/ops`. */
export function addRoutes(
  app: Express,
  lists: { pages: readonly OpsPage[]; actions: readonly OpsAction[] },
  made: RouteParts,
): void {
  addTo(app, "/ops", lists, {
    showing: (page) => showing(page, made),
    acting: (action) => acting(action, made),
  });
}

function showing<Query>(page: OpsPage<Query>, { parts, responder, reads }: RouteParts): RequestHandler {
  return async (request, response) => {
    const { visitor } = requireSignedIn(response);
    if (page.roles !== undefined && !page.roles.includes(visitor.role)) {
      throw new PageError(403, `this page requires the role ${rolesText(page.roles)}; your role is ${visitor.role}`);
    }
    const gone = clientGone(response);
    await showPage(responder, request, response as PageReply, {
      query: page.query,
      show: (rest) => reads(gone, (sql) => page.show({ ...parts, sql }, { visitor, ...rest })),
      read: (work) => reads(gone, work),
    });
  };
}

function acting<Form>(action: OpsAction<Form>, { parts, responder, guard }: RouteParts): RequestHandler {
  return async (request, response) => {
    const who = requireSignedIn(response);
    const { visitor } = who;
    if (!mayDo(action, visitor.role)) {
      const { requestId, email } = visitor;
      parts.log.warn({ request_id: requestId, actor: email, action: action.name }, "refused a role");
      const title = action.title === undefined ? "this action" : `“${action.title}”`;
      throw new PageError(
        403,
        `${title} requires the role ${rolesText(rolesOf(action))}; your role is ${visitor.role}`,
      );
    }
    await act({ responder, sql: parts.sql, log: parts.log }, request, response as PageReply, {
      ...action,
      actor: { actor: visitor.email },
      requirement: requirementOf(action, who),
      confirm: (given) => guard.confirm(who, given),
      run: (sent) => action.run(parts, { visitor, ...sent }),
    });
  };
}

/** What an action requires of a member of staff before it runs; null if nothing, or if their role may not do it. */
export function requirementOf(
  action: Pick<OpsAction, "name" | "title" | "roles" | "isDangerous" | "needsTwoFactor">,
  who: SignedIn,
): Requirement | null {
  if (!action.isDangerous || !mayDo(action, who.visitor.role)) return null;
  const { isFresh, hasPassword, hasTwoFactor, visitor } = who;
  const name = action.title ?? action.name;
  if (action.needsTwoFactor === true && !hasTwoFactor) {
    return { isFresh, name, stepUp: { kind: "enroll", page: "/ops/me" } };
  }
  if (!hasPassword) return { isFresh, name, stepUp: { kind: "link" } };
  return { isFresh, name, stepUp: { kind: "proof", email: visitor.email, hasTwoFactor } };
}

/** Whether a role may do it. An admin may do everything. */
export function mayDo(action: Pick<OpsAction, "roles">, role: Role): boolean {
  return rolesOf(action).includes(role);
}

function rolesText(roles: readonly Role[]): string {
  return new Intl.ListFormat("en-GB", { type: "disjunction" }).format(roles);
}

function rolesOf({ roles }: Pick<OpsAction, "roles">): Role[] {
  return [...roles, "admin"];
}
