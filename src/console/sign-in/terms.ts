import type { Express, Request } from "express";
import { z } from "zod";
import { legalText, paragraphsOf } from "../../accounts/legal.ts";
import { openOwnAccount } from "../../accounts/sign-up.ts";
import { localPath } from "../../frame/answer.ts";
import { isLooking } from "../../frame/pages.ts";
import type { PageReply } from "../../frame/view.ts";
import { acceptTerms } from "../agree.ts";
import { requireHolder, setSignedIn, type RouteParts, requireSignedIn } from "../who.ts";
import { addPublicForm, box, formOf, goal, queryOf } from "../../frame/sign-in/public-forms.ts";

const TERMS = "/console/terms";
const query = z.object({ to: goal });
const acceptForm = z.object({ terms: box, to: goal, version: z.string().max(20).optional() });
const welcomeForm = z.object({ terms: box, adult: box });

/** Adds the public page of the terms. It asks signed-in holders who have not accepted this version to do so. */
export function addTerms(app: Express, { answers, parts, guard }: RouteParts): void {
  async function show(request: Request, reply: PageReply, shown: { problem: string; to: string }, status = 200) {
    const who = await guard.whoIs(request, reply.locals.requestId);
    if (who !== null) setSignedIn(reply, who); // for the layout
    const { version, text, sha256 } = legalText("terms");
    const asks = who !== null && who.holder !== null && !who.hasCurrentTerms;
    const operator = parts.settings.OPERATOR_NAME ?? null;
    const data = { ...shown, version, sha256, asks, operator, paragraphs: paragraphsOf(text) };
    answers.show(request, reply, { template: "sign-in/terms", width: "reading", title: "Terms", data }, status);
  }

  app.get(TERMS, (request, response) =>
    show(request, response as PageReply, { problem: "", ...queryOf(request, query) }),
  );
}

/** Adds accepting the terms, and the page that opens an account for people who sign in without one. */
export function addAgreeing(app: Express, { answers, parts }: RouteParts): void {
  const { sql } = parts;

  app.post(TERMS, async (request, response) => {
    const reply = response as PageReply;
    const { holder } = requireHolder(response);
    const { terms, to, version = legalText("terms").version } = await formOf(request, acceptForm);
    const isRead = version === legalText("terms").version;
    if (!terms || !isRead) {
      const message = isRead
        ? "the terms are not accepted; tick their box to continue"
        : "the terms have changed since you opened the page; read them again";
      return answers.goOn(reply, `${TERMS}?to=${encodeURIComponent(to)}`, message);
    }
    await acceptTerms(sql, holder);
    answers.goOn(reply, localPath("/console", to), "the terms are accepted");
  });

  function showWelcome(request: Request, reply: PageReply, problem: string, status = 200) {
    const data = { problem, email: requireSignedIn(reply).person.email };
    answers.show(
      request,
      reply,
      { template: "sign-in/welcome", width: "reading", title: "Open an account", data },
      status,
    );
  }

  addPublicForm(app, "/welcome", {
    show(request, reply) {
      if (requireSignedIn(reply).holder !== null) return answers.goOn(reply, "/console", "");
      showWelcome(request, reply, "");
    },
    async take(request, reply) {
      const { holder, person } = requireSignedIn(reply);
      const { terms, adult } = await formOf(request, welcomeForm);
      if (holder !== null) return answers.goOn(reply, "/console", "");
      if (!terms || !adult) {
        return showWelcome(
          request,
          reply,
          "tick both boxes to open an account: the terms, and that you are 18 or older",
          422,
        );
      }
      const accountId = await openOwnAccount(sql, person);
      if (accountId === null) {
        const problem = "another person holds the account with your address; contact the operator of this service";
        return showWelcome(request, reply, problem, 409);
      }
      answers.goOn(reply, "/console", "the account is yours");
    },
  });

  // all following routes need an account
  app.use((request, response, next) => {
    if (requireSignedIn(response).holder !== null || !isLooking(request)) return next();
    answers.goOn(response as PageReply, "/console/welcome", "");
  });
}
