import QRCode from "qrcode";
import { z } from "zod";
import { askSession, cookieOf, SIGNED_OUT } from "../../accounts/identity/ask-session.ts";
import { askOwnCode, WRONG_CODE, WRONG_PASSWORD } from "../../accounts/identity/code.ts";
import { dropReplacedFactor, dropTwoFactor, findFactorSecret } from "../../accounts/identity/code-store.ts";
import type { Identity } from "../../accounts/identity/identity.ts";
import { endSessions } from "../../accounts/identity/session-store.ts";
import type { Sql } from "../../db/client.ts";
import { type Responder, localPath } from "../responder.ts";
import { requesterOf, passCookies } from "../requester.ts";
import type { AddAccountForm } from "./account-forms.ts";
import { queryOf, toQuery } from "./public-forms.ts";
import type { PageReply } from "../view.ts";

const passwordOnly = z.object({ password: z.string().max(1_000) });
const both = z.object({ password: z.string().max(1_000), code: z.string().max(100).default("") });
const sixDigits = z.object({
  code: z.string().regex(/^\s*(?:\d\s*){6}$/, "expected the six digits that the app shows"),
});
const enabled = z.object({ totpURI: z.string(), backupCodes: z.array(z.string()) });
const codes = z.object({ backupCodes: z.array(z.string()) });
const ON_ALREADY = "Two-factor authentication is on already. Turn it off first.";
const REPLACED =
  "Another authenticator was set up at the same time, so two-factor authentication is off. Turn it on again.";
const NONE = "Two-factor authentication is off. Turn it on first.";

/** A change of two-factor authentication. */
export type FactorChange = "on" | "off" | "new-codes";

/** The audit entry of each change. */
export const FACTOR_ENTRIES = {
  on: { action: "own.two-factor", before: { two_factor: false }, after: { two_factor: true } },
  off: { action: "own.two-factor", before: { two_factor: true }, after: { two_factor: false } },
  "new-codes": { action: "own.backup-codes", before: null, after: { made: true } },
} as const;

/** What the two-factor pages need. */
export interface TwoFactorParts {
  responder: Responder;
  sql: Sql;
  identity: Identity;
  /** The account page, to which all these pages link back. */
  page: { href: string; label: string };
  /** Whether everyone must keep two-factor authentication turned on. */
  mustHaveOne: boolean;
  /** Records a change, and notifies the people concerned. */
  note(reply: PageReply, change: FactorChange): Promise<void>;
}

/**
 * Adds the forms for two-factor authentication. The library stores it in its own transactions; each change is recorded
 * right after it.
 */
export function addTwoFactor(addForm: AddAccountForm, parts: TwoFactorParts): void {
  addEnrollment(addForm, parts);
  addConfirmation(addForm, parts);
  addCodesAndDisabling(addForm, parts);
}

/** Adds the form that shows a new secret. */
function addEnrollment(addForm: AddAccountForm, parts: TwoFactorParts): void {
  const { responder, identity, page } = parts;
  const crumbs = [page];

  addForm("/two-factor/enable", passwordOnly, async ({ request, reply, own, form, refuse, refuseProof, mayTry }) => {
    if (own.hasTwoFactor) return refuse(ON_ALREADY);
    if (!(await mayTry())) return;
    const { to } = queryOf(request, toQuery);
    const asked = { password: form.password };
    const { status, body } = await identity.ask("/two-factor/enable", asked, requesterOf(request));
    if (status === 400) return refuseProof(WRONG_PASSWORD);
    if (status !== 200) return refuse(`two-factor authentication was not set up (${status}); try again`);
    const { totpURI, backupCodes } = enabled.parse(body);
    const svg = await QRCode.toString(totpURI, { type: "svg", margin: 4 });
    const data = {
      page,
      verify: `${page.href}/two-factor/verify${to === "" ? "" : `?to=${encodeURIComponent(to)}`}`,
      qr: `data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`,
      secret: new URL(totpURI).searchParams.get("secret") ?? "",
      backupCodes,
    };
    responder.show(request, reply, {
      template: "frame/sign-in/enroll",
      title: "Turn on two-factor authentication",
      data,
      crumbs,
    });
  });
}

/**
 * Adds the form that verifies a code of the new secret, and turns two-factor authentication on. It ends the other sessions,
 * which began without a code.
 */
function addConfirmation(addForm: AddAccountForm, parts: TwoFactorParts): void {
  const { responder, page } = parts;

  addForm("/two-factor/verify", sixDigits, async ({ request, reply, own, form, refuse, refuseProof, mayTry }) => {
    if (own.hasTwoFactor) return refuse(ON_ALREADY);
    if (!(await mayTry())) return;
    const requester = requesterOf(request);
    let isReplaced = false;
    const ask = async () => {
      const secret = await findFactorSecret(parts.sql, own.userId);
      const checked = await askOwnCode(parts, requester, own.userId, form.code);
      if (checked.status !== 200) return checked;
      isReplaced = await dropReplacedFactor(parts.sql, own.userId, secret);
      if (!isReplaced) await parts.note(reply, "on"); // now: `askSession` may fail after it
      return checked;
    };
    const response = await askSession(parts, own, requester, ask); // the library replaces the session
    if (response.status !== 200) return refuseProof(WRONG_CODE);
    if (response.isRevoked && !isReplaced) {
      // a thief must not lock out the holder who ended the thief's session
      await dropTwoFactor(parts.sql, own.userId);
      await parts.note(reply, "off");
      return refuse(SIGNED_OUT, 409);
    }
    passCookies(reply, response.cookies);
    if (isReplaced) return refuse(REPLACED, 409);
    const session = await parts.identity.findSession(cookieOf(response));
    await parts.sql.begin((tx) => endSessions(tx, own.userId, { except: session?.sessionId ?? null }));
    const { to } = queryOf(request, toQuery);
    const message = "Two-factor authentication is on: sign-ins now require a code, and your other sign-ins have ended.";
    responder.redirect(reply, to === "" ? page.href : localPath(responder.surface.base, to), message);
  });
}

/** Adds new backup codes, and turning it off. Both require the password and a code. */
function addCodesAndDisabling(addForm: AddAccountForm, parts: TwoFactorParts): void {
  const { responder, identity, page } = parts;
  const crumbs = [page];

  addForm("/two-factor/codes", both, async (sent) => {
    const { request, reply, form, refuse } = sent;
    if (!sent.own.hasTwoFactor) return refuse(NONE);
    if (!(await sent.isThem(form))) return;
    const asked = { password: form.password };
    const response = await identity.ask("/two-factor/generate-backup-codes", asked, requesterOf(request));
    if (response.status !== 200) return refuse(`no new codes were made (${response.status})`);
    await parts.note(reply, "new-codes");
    const data = { page, ...codes.parse(response.body) };
    responder.show(request, reply, { template: "frame/sign-in/codes", title: "New backup codes", data, crumbs });
  });

  addForm("/two-factor/disable", both, async (sent) => {
    const { request, reply, form, refuse } = sent;
    if (parts.mustHaveOne) return refuse("all staff of this instance must use two-factor authentication");
    if (!sent.own.hasTwoFactor) return refuse(NONE);
    if (!(await sent.isThem(form))) return;
    const requester = requesterOf(request);
    const ask = async () => {
      const done = await identity.ask("/two-factor/disable", { password: form.password }, requester);
      if (done.status === 200) await parts.note(reply, "off"); // now: `askSession` may fail after it
      return done;
    };
    const response = await askSession(parts, sent.own, requester, ask);
    if (response.status !== 200) return refuse(`the second factor is still on (${response.status})`);
    if (response.isRevoked) return refuse(`Two-factor authentication is off, but ${SIGNED_OUT}.`, 409);
    passCookies(reply, response.cookies);
    responder.redirect(reply, page.href, "Two-factor authentication is off.");
  });
}
