import QRCode from "qrcode";
import { z } from "zod";
import { findPasswordHash } from "../../accounts/operator-store.ts";
import { isPassword } from "../../accounts/password.ts";
import { audited } from "../../audit/store.ts";
import type { Answers } from "../../frame/answer.ts";
import { auditEntry } from "../audit-entry.ts";
import type { Visitor } from "../contract.ts";
import { askCode, askerOf, WRONG_CODE, WRONG_PASSWORD } from "../sign-in/doorkeeper.ts";
import type { PageReply } from "../../frame/shown.ts";
import type { AddOwnForm, OwnForm, OwnParts } from "./own.ts";

const ME = "/ops/me";
const passwordOnly = z.object({ password: z.string().max(1_000) });
const both = z.object({ password: z.string().max(1_000), code: z.string().max(100) });
const enabled = z.object({ totpURI: z.string(), backupCodes: z.array(z.string()) });
const codes = z.object({ backupCodes: z.array(z.string()) });
const ON_ALREADY = "there is a second factor already; turn it off before another is turned on";

/**
 * Adds turning the second factor on and off. The library keeps it, in transactions of its own: each is written to the
 * audit log right after it was done.
 */
export function addTwoFactor(addForm: AddOwnForm, own: OwnParts & { answers: Answers }): void {
  const { answers, sql, identity, mustHaveTwoFactor } = own;

  async function note(visitor: Visitor, action: string, before: object | null, after: object | null) {
    const entry = auditEntry(visitor, { action, target: `operator ${visitor.email}`, before, after });
    await audited(sql, async () => ({ result: null, entry }));
  }

  /** Whether password and code are right; else it is answered. */
  async function isThem({ request, who, form, refuseProof, mayTry }: OwnForm<{ password: string; code: string }>) {
    if (!(await mayTry())) return false;
    const kept = await findPasswordHash(sql, who.visitor.operatorId);
    if (kept === null || !(await isPassword(form.password, kept))) await refuseProof(WRONG_PASSWORD);
    else if ((await askCode(own, askerOf(request), who.visitor.operatorId, form.code)).status !== 200) {
      await refuseProof(WRONG_CODE);
    } else return true;
    return false;
  }

  addForm("/two-factor/enable", passwordOnly, async ({ request, reply, who, form, refuse, refuseProof, mayTry }) => {
    if (who.hasTwoFactor) return refuse(ON_ALREADY);
    if (!(await mayTry())) return;
    const { status, body } = await identity.ask("/two-factor/enable", { password: form.password }, askerOf(request));
    if (status === 400) return refuseProof(WRONG_PASSWORD);
    if (status !== 200) return refuse(`refused (${status})`);
    const { totpURI, backupCodes } = enabled.parse(body);
    const data = {
      problem: "",
      qr: `data:image/svg+xml;base64,${Buffer.from(await QRCode.toString(totpURI, { type: "svg", margin: 4 })).toString("base64")}`,
      secret: new URL(totpURI).searchParams.get("secret") ?? "",
      backupCodes,
    };
    const crumbs = [{ label: "Your sign-in", href: ME }];
    answers.show(request, reply, { template: "me/enroll", title: "Turn a second factor on", data, crumbs });
  });

  addForm(
    "/two-factor/verify",
    z.object({ code: z.string().regex(/^\s*(?:\d\s*){6}$/, "expected the six digits that the app shows") }),
    async ({ request, reply, who, form, refuse, refuseProof, mayTry }) => {
      if (who.hasTwoFactor) return refuse(ON_ALREADY);
      if (!(await mayTry())) return;
      const answer = await askCode(own, askerOf(request), who.visitor.operatorId, form.code);
      if (answer.status !== 200) return refuseProof(WRONG_CODE);
      passOn(reply, answer.cookies);
      await note(who.visitor, "own.two-factor", { two_factor: false }, { two_factor: true });
      answers.goOn(reply, ME, "the second factor is on: from now on a sign-in wants a code");
    },
  );

  addForm("/two-factor/codes", both, async (sent) => {
    const { request, reply, who, form, refuse } = sent;
    if (!(await isThem(sent))) return;
    const answer = await identity.ask(
      "/two-factor/generate-backup-codes",
      { password: form.password },
      askerOf(request),
    );
    if (answer.status !== 200) return refuse(`no new codes were made (${answer.status})`);
    await note(who.visitor, "own.backup-codes", null, { made: true });
    const crumbs = [{ label: "Your sign-in", href: ME }];
    answers.show(request, reply, {
      template: "me/codes",
      title: "New backup codes",
      data: codes.parse(answer.body),
      crumbs,
    });
  });

  addForm("/two-factor/disable", both, async (sent) => {
    const { request, reply, who, form, refuse } = sent;
    if (mustHaveTwoFactor) return refuse("everybody needs a second factor here");
    if (!(await isThem(sent))) return;
    const answer = await identity.ask("/two-factor/disable", { password: form.password }, askerOf(request));
    if (answer.status !== 200) return refuse(`the second factor is still on (${answer.status})`);
    passOn(reply, answer.cookies);
    await note(who.visitor, "own.two-factor", { two_factor: true }, { two_factor: false });
    answers.goOn(reply, ME, "the second factor is off");
  });
}

function passOn(reply: PageReply, cookies: readonly string[]): void {
  for (const cookie of cookies) reply.append("Set-Cookie", cookie);
}
