import type { Express, Request, RequestHandler } from "express";
import { clientGone } from "../http/client-gone.ts";
import { hasAudit } from "../audit/store.ts";
import type { Reads } from "../db/reads.ts";
import type { Answers } from "../frame/answer.ts";
import type { Typed } from "../frame/body.ts";
import { PageError } from "../frame/errors.ts";
import { addRoutes as addTo, askForProof, isStillThem, showPage, takeForm } from "../frame/routes.ts";
import type { PageReply } from "../frame/view.ts";
import type { OpsAction, OpsPage, OpsParts, Role } from "./contract.ts";
import { type Guard, signedIn, type SignedIn } from "./who.ts";

/** What routes are made of. */
export interface RouteParts {
  parts: OpsParts;
  answers: Answers;
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

function showing<Query>(page: OpsPage<Query>, { parts, answers, reads }: RouteParts): RequestHandler {
  return async (request, response) => {
    const { visitor } = signedIn(response);
    if (page.roles !== undefined && !page.roles.includes(visitor.role)) {
      throw new PageError(403, `this page is for ${page.roles.join(", ")}; you are ${visitor.role}`);
    }
    await showPage(answers, request, response as PageReply, {
      query: page.query,
      show: (asked) => reads(clientGone(response), (sql) => page.show({ ...parts, sql }, { visitor, ...asked })),
    });
  };
}

function acting<Form>(action: OpsAction<Form>, { parts, answers, guard }: RouteParts): RequestHandler {
  return async (request, response) => {
    const reply = response as PageReply;
    const who = signedIn(response);
    const { visitor } = who;
    const logFields = { request_id: visitor.requestId, actor: visitor.email, action: action.name };
    if (!mayDo(action, visitor.role)) {
      parts.log.warn(logFields, "refused a role");
      throw new PageError(403, `${action.name} is for ${rolesOf(action).join(", ")}; you are ${visitor.role}`);
    }
    await takeForm(answers, request, reply, {
      form: action.form,
      file: action.file,
      async mayGoOn(sent) {
        if (!action.isDangerous) return true;
        return isStillThem(sent, {
          isFresh: who.isFresh,
          confirm: () => guard.confirm(who, { ...sent.proof, request }),
          ask: (problem) => askAgain(answers, request, reply, { who, name: action.name, fields: sent.fields, problem }),
        });
      },
      run: (sent) => action.run(parts, { visitor, ...sent }),
      async wasDone() {
        if (!(await hasAudit(parts.sql, visitor.requestId))) {
          throw new Error(
            `${action.name} was done and left nothing in the audit log; it must add an entry in its transaction`,
          );
        }
        parts.log.info(logFields, "operator acted");
      },
    });
  };
}

/** Asks for the password (and the code) again, or where there is none how to prove it; what was sent goes with it. */
export function askAgain(
  answers: Answers,
  request: Request,
  reply: PageReply,
  { who, ...asked }: { who: SignedIn; name: string; fields: Typed; problem: string | null },
): void {
  const { visitor, hasPassword, hasTwoFactor } = who;
  if (hasPassword) return askForProof(answers, request, reply, { email: visitor.email, hasTwoFactor, ...asked });
  const { name, problem } = asked;
  const data = { name, problem };
  answers.show(request, reply, { template: "sign-in/no-password", title: "Is it still you?", data }, 403);
}

/** Whether a role may do it. An admin may do everything. */
export function mayDo(action: Pick<OpsAction, "roles">, role: Role): boolean {
  return rolesOf(action).includes(role);
}

function rolesOf({ roles }: Pick<OpsAction, "roles">): Role[] {
  return [...roles, "admin"];
}
