import type { Express, RequestHandler } from "express";
import { clientGone } from "../http/client-gone.ts";
import { findAccount } from "../callers/account-store.ts";
import { PageError } from "../frame/errors.ts";
import { addRoutes as addTo, type SentForm, showPage } from "../frame/routes.ts";
import type { PageReply } from "../frame/view.ts";
import { showProblem } from "../frame/problem-page.ts";
import { ensureTermsAccepted } from "./agree.ts";
import type { ConsoleAction, ConsolePage } from "./contract.ts";
import { act } from "../frame/sign-in/act.ts";
import type { Requirement } from "../frame/sign-in/step-up.ts";
import { requireSignedIn, type RouteParts, type SignedInHolder } from "./signed-in.ts";

/** Actions that a suspended account may still do: revoking a key only protects it. */
const DONE_WHILE_SUSPENDED: ReadonlySet<string> = new Set(["key.revoke"]);

/** Adds the pages and actions of holders below `/console`. */
export function addRoutes(
  app: Express,
  lists: { pages: readonly ConsolePage[]; actions: readonly ConsoleAction[] },
  made: RouteParts,
): void {
  addTo(app, "/console", lists, {
    showing: (page) => showing(page, made),
    acting: (action) => acting(action, made),
  });
}

function showing<Query>(page: ConsolePage<Query>, { parts, responder, reads }: RouteParts): RequestHandler {
  return async (request, response) => {
    const { holder } = requireSignedIn(response);
    const gone = clientGone(response);
    await showPage(responder, request, response as PageReply, {
      query: page.query,
      show: (asked) => reads(gone, (sql) => page.show({ ...parts, sql }, { holder, ...asked })),
      read: (work) => reads(gone, work),
    });
  };
}

function acting<Form>(action: ConsoleAction<Form>, { parts, responder, guard }: RouteParts): RequestHandler {
  return async (request, response) => {
    const reply = response as PageReply;
    const who = requireSignedIn(response);
    const { holder, hasCurrentTerms } = who;
    const { name, needs } = action;
    const actor = { account: String(holder.accountId) };

    async function mayGoOn(sent: SentForm): Promise<boolean> {
      if (holder.isSuspended && !DONE_WHILE_SUSPENDED.has(name)) {
        parts.log.warn({ request_id: holder.requestId, ...actor, action: name }, "refused a suspended account");
        const message = await whySuspended(parts.sql, holder.accountId);
        showProblem(responder, request, reply, { status: 403, message, attempt: null });
        return false;
      }
      const lacksTerms = needs.includes("terms") && !hasCurrentTerms;
      return !lacksTerms || ensureTermsAccepted({ parts, responder }, request, reply, { holder, sent });
    }

    await act({ responder, sql: parts.sql, log: parts.log }, request, reply, {
      name,
      form: action.form,
      actor,
      mayGoOn,
      requirement: requirementOf(action, who),
      confirm: (given) => guard.confirm(who, given),
      run: (sent) => action.run(parts, { holder, ...sent }),
    });
  };
}

/** What an action requires of a holder before it runs, besides the terms; null if nothing, or if it is refused anyway. */
export function requirementOf(
  { name, title, needs }: Pick<ConsoleAction, "name" | "title" | "needs">,
  { holder, hasTwoFactor, isFresh }: SignedInHolder,
): Requirement | null {
  const isRefused = holder.isSuspended && !DONE_WHILE_SUSPENDED.has(name);
  const isNeeded = needs.includes("fresh") || (needs.includes("fresh-with-second-factor") && hasTwoFactor);
  if (isRefused || !isNeeded) return null;
  return { isFresh, name: title ?? "your request", stepUp: { kind: "proof", email: holder.email, hasTwoFactor } };
}

/** The message that refuses a change to the holder of a suspended account. */
async function whySuspended(sql: RouteParts["parts"]["sql"], id: bigint): Promise<string> {
  const account = await findAccount(sql, { id });
  if (account === null) throw new PageError(404, "there is nothing under this address");
  const reason = account.suspendReason ?? "no reason is written down";
  return `your account is suspended (${reason}): you can look at everything, revoke keys and change your sign-in, but nothing else until it is restored`;
}
