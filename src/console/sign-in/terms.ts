import type { Express, Request } from "express";
import { z } from "zod";
import { legalText, paragraphsOf } from "../../accounts/legal.ts";
import { localPath } from "../../frame/responder.ts";
import type { PageReply } from "../../frame/view.ts";
import { acceptTerms } from "../agree.ts";
import { requireSignedIn, type RouteParts, setSignedIn } from "../signed-in.ts";
import { box, formOf, queryOf, returnPath, toQuery } from "../../frame/sign-in/public-forms.ts";

const TERMS = "/console/terms";
const acceptForm = z.object({ terms: box, to: returnPath, version: z.string().max(20).optional() });

/** Adds the public page of the terms. It asks signed-in holders who have not accepted this version to do so. */
export function addTerms(app: Express, { responder, parts, guard }: RouteParts): void {
  async function show(request: Request, reply: PageReply, shown: { problem: string; to: string }, status = 200) {
    const who = await guard.whoIs(request, reply.locals.requestId);
    setSignedIn(reply, who); // for the layout
    const { version, text, sha256 } = legalText("terms");
    const asks = who !== null && !who.hasCurrentTerms;
    const operator = parts.settings.OPERATOR_NAME ?? null;
    const data = { ...shown, version, sha256, asks, operator, paragraphs: paragraphsOf(text) };
    responder.show(request, reply, { template: "sign-in/terms", width: "reading", title: "Terms", data }, status);
  }

  app.get(TERMS, (request, response) =>
    show(request, response as PageReply, { problem: "", ...queryOf(request, toQuery) }),
  );
}

/** Adds accepting the terms. */
export function addAcceptTerms(app: Express, { responder, parts }: RouteParts): void {
  app.post(TERMS, async (request, response) => {
    const reply = response as PageReply;
    const { holder } = requireSignedIn(response);
    const { terms, to, version = legalText("terms").version } = await formOf(request, acceptForm);
    const isRead = version === legalText("terms").version;
    if (!terms || !isRead) {
      const message = isRead
        ? "the terms are not accepted; tick their box to continue"
        : "the terms have changed since you opened the page; read them again";
      return responder.redirect(reply, `${TERMS}?to=${encodeURIComponent(to)}`, message);
    }
    await acceptTerms(parts.sql, holder);
    responder.redirect(reply, localPath("/console", to), "the terms are accepted");
  });
}
