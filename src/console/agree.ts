import type { Request } from "express";
import { hasCurrentConsent, saveConsent } from "../accounts/holders/consent-store.ts";
import { holderEntry } from "../accounts/holders/holder-entry.ts";
import { legalText, paragraphsOf } from "../accounts/legal.ts";
import { appendAudit } from "../audit/store.ts";
import { ACCOUNT_CLOSED, lockAccount } from "../callers/lock-store.ts";
import type { Sql } from "../db/client.ts";
import { PageError } from "../frame/errors.ts";
import type { SentForm } from "../frame/routes.ts";
import type { PageReply } from "../frame/view.ts";
import { backOf, fieldsOf } from "../frame/problem-page.ts";
import type { Holder } from "./contract.ts";
import type { RouteParts } from "./signed-in.ts";

/**
 * Records that a holder accepted the current terms, with an audit entry. Does nothing if they accepted them before.
 * @throws PageError 403 if the account was closed meanwhile: its consents keep no address
 */
export async function acceptTerms(sql: Sql, holder: Holder): Promise<void> {
  const { accountId, address, userAgent } = holder;
  await sql.begin(async (tx) => {
    if (await hasCurrentConsent(tx, accountId, "terms")) return;
    if (!(await lockAccount(tx, accountId))) throw new PageError(403, ACCOUNT_CLOSED);
    await saveConsent(tx, { accountId, kind: "terms", address, userAgent });
    const after = { version: legalText("terms").version };
    await appendAudit(tx, holderEntry(holder, { action: "terms.accept", after }));
  });
}

/**
 * True if the form accepts the current version of the terms; the consent is then stored. Otherwise responds with the
 * terms, a box to tick and the fields of the form, so that sending it again completes the action.
 */
export async function ensureTermsAccepted(
  { parts, responder }: Pick<RouteParts, "parts" | "responder">,
  request: Request,
  reply: PageReply,
  { holder, sent }: { holder: Holder; sent: SentForm },
): Promise<boolean> {
  const { version, text, sha256 } = legalText("terms");
  if (sent.agreedTo === version) {
    await acceptTerms(parts.sql, holder);
    return true;
  }
  const operator = parts.settings.OPERATOR_NAME ?? null;
  const data = {
    terms: { version, sha256, operator, paragraphs: paragraphsOf(text) },
    action: request.originalUrl,
    fields: fieldsOf(sent.fields),
    back: backOf(responder.surface.base, request),
  };
  responder.show(request, reply, { template: "agree", title: "The terms have changed", data }, 403);
  return false;
}
