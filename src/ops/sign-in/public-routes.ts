import type { Express, Request } from "express";
import { z } from "zod";
import { askSession, recordOrEnd, REVOKED, SIGNED_OUT } from "../../accounts/identity/ask-session.ts";
import { LOCAL_OPERATOR } from "../../accounts/operators/local-operator.ts";
import { findOperator } from "../../accounts/operators/operator-store.ts";
import { takeTry, tooMany } from "../../accounts/identity/tries.ts";
import { audited } from "../../audit/store.ts";
import { PageError } from "../../frame/errors.ts";
import { addressOf, passCookies, requesterOf } from "../../frame/requester.ts";
import type { SignInParts } from "../../frame/sign-in/guard.ts";
import { queryOf, typedToken } from "../../frame/sign-in/public-forms.ts";
import { addSignIn, endFormer, type SignInEvent } from "../../frame/sign-in/sign-in.ts";
import type { PageReply } from "../../frame/view.ts";
import type { RouteParts } from "../routes.ts";

const TITLE = "Sign in to operations";
const LINK_PRINTED = {
  template: "sign-in/link-printed",
  title: "A new link was printed",
  width: "reading",
  data: {},
} as const;
const linkQuery = z.object({ token: typedToken });

/** Prints a new one-time link in the terminal of the service; null if it is reachable from other machines. */
export type PrintLink = (() => Promise<void>) | null;

/** Adds the routes that need no sign-in. No response shows whether an address may sign in. */
export function addPublicRoutes(
  app: Express,
  { responder }: RouteParts,
  parts: SignInParts & { printLink: PrintLink },
): void {
  const { sql, identity, buckets, printLink } = parts;
  const pages = {
    title: TITLE,
    below: "ops/sign-in/print-link",
    data: { printsLinks: printLink !== null },
    record: (request: Request, reply: PageReply, event: SignInEvent) => recordEvent(sql, request, reply, event),
  };
  const showSignIn = addSignIn(app, responder, parts, pages);

  const link = app.route("/ops/link");
  // HEAD must not use the link up: mail scanners and previews send it
  link.head(() => {
    throw new PageError(405, "this path takes GET", { Allow: "GET" });
  });
  link.get(async (request, response) => {
    const reply = response as PageReply;
    const { token } = queryOf(request, linkQuery);
    const requester = requesterOf(request);
    const ask = () => identity.ask("/sign-in/link", { token }, requester);
    const signIn = await askSession(parts, { email: LOCAL_OPERATOR }, requester, ask);
    if (signIn.status >= 500) throw new Error(`better-auth returned ${signIn.status} for a sign-in link`);
    if (signIn.status !== 200) {
      const problem = "This link was used already, or has expired.";
      return showSignIn(request, reply, { problem, to: "" }, 401);
    }
    if (signIn.isRevoked) {
      const event = { action: "session.refused", who: { email: LOCAL_OPERATOR }, reason: REVOKED } as const;
      await recordEvent(sql, request, reply, event);
      return showSignIn(request, reply, { problem: SIGNED_OUT, to: "" }, 401);
    }
    const reason = "with the link that was printed at the start";
    const event = { action: "session.begin", who: { email: LOCAL_OPERATOR }, reason } as const;
    await recordOrEnd(parts, requester, signIn, () => recordEvent(sql, request, reply, event));
    await endFormer({ parts, record: pages.record }, request, reply);
    passCookies(reply, signIn.cookies);
    responder.redirect(reply, "/ops", "");
  });
  link.all(() => {
    throw new PageError(405, "this path takes GET", { Allow: "GET" });
  });

  app.post("/ops/link/new", async (request, response) => {
    const reply = response as PageReply;
    if (printLink === null) throw new PageError(403, "Links are printed only if Roundhouse serves this machine alone.");
    const wait = await takeTry(buckets, { what: "ops", address: addressOf(request), who: LOCAL_OPERATOR });
    if (wait > 0) throw new PageError(429, tooMany(wait), { "Retry-After": String(wait) });
    await printLink();
    responder.show(request, reply, LINK_PRINTED);
  });
}

/** Adds an event to the audit log. Of addresses that are no operator's nothing is recorded. */
async function recordEvent(
  sql: SignInParts["sql"],
  request: Request,
  reply: PageReply,
  { action, who, reason }: SignInEvent,
): Promise<void> {
  await audited(sql, async (tx) => {
    const operator = await findOperator(tx, who);
    const entry = operator && {
      surface: "ops" as const,
      actor: operator.email,
      role: operator.role,
      action,
      target: `operator ${operator.email}`,
      before: null,
      after: null,
      reason,
      requestId: reply.locals.requestId,
      address: addressOf(request),
    };
    return { result: null, entry };
  });
}
