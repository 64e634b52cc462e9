import type { Express, Request, Response } from "express";
import { z } from "zod";
import { findPasswordHash, savePassword } from "../../accounts/operator-store.ts";
import { hashPassword, isPassword, passwordProblem } from "../../accounts/password.ts";
import { endSession, endSessions, listSessions } from "../../accounts/session-store.ts";
import { takeTry } from "../../accounts/tries.ts";
import { appendAudit } from "../../audit/store.ts";
import { auditEntry } from "../audit-entry.ts";
import { readForm } from "../../frame/body.ts";
import { PageError } from "../../frame/errors.ts";
import { askAgain, problemOf, type RouteParts } from "../routes.ts";
import { type DoorParts, noteRefusal, tooMany } from "../sign-in/doorkeeper.ts";
import { IDLE_SECONDS } from "../sign-in/limits.ts";
import { showProblem } from "../../frame/trouble.ts";
import type { PageReply } from "../../frame/shown.ts";
import { signedIn, type SignedIn } from "../who.ts";
import { addTwoFactor } from "./two-factor.ts";

const ME = "/ops/me";
const passwordForm = z.object({
  current: z.string().max(1_000).default(""),
  next: z.string().max(1_000),
  again: z.string().max(1_000),
});

/** What somebody does for themselves is made of. */
export interface OwnParts extends DoorParts {
  /** Whether everybody needs a second factor: without one only this page opens. */
  mustHaveTwoFactor: boolean;
}

/** A form that somebody sent about themselves: what it holds, and ways to answer. */
export interface OwnForm<Form> {
  request: Request;
  reply: PageReply;
  who: SignedIn;
  form: Form;
  /** Shows what is wrong. */
  refuse: (problem: string, status?: number) => void;
  /** Shows that the password or the code is wrong, and writes it down. */
  refuseProof: (problem: string) => Promise<void>;
  /** Takes one of the few tries there are for passwords; false, and answered, where none is left. */
  mayTry: () => Promise<boolean>;
}

/** Adds a form about oneself, which every role may send. */
export type AddOwnForm = <Form>(
  path: string,
  schema: z.ZodType<Form>,
  run: (sent: OwnForm<Form>) => Promise<void>,
) => void;

/** Adds what everybody does for themselves, whatever their role: their sign-ins, password and second factor. */
export function addOwn(app: Express, { answers }: RouteParts, own: OwnParts): void {
  const { sql, buckets, mustHaveTwoFactor } = own;

  app.get(ME, async (request, response) => {
    const { visitor, sessionId, hasPassword, hasTwoFactor } = signedIn(response);
    const sessions = await listSessions(sql, visitor.operatorId, { idleSeconds: IDLE_SECONDS });
    const data = { sessions, sessionId, hasPassword, hasTwoFactor, mustHaveTwoFactor };
    answers.show(request, response as PageReply, { template: "me/me", title: "Your sign-in", data });
  });

  const addForm: AddOwnForm = (path, schema, run) => {
    app.post(`${ME}${path}`, async (request: Request, response: Response) => {
      const reply = response as PageReply;
      const who = signedIn(response);
      const fields = await readForm(request);
      const attempt = { method: "post", action: request.originalUrl, typed: fields } as const;
      const refuse = (message: string, status = 422) =>
        showProblem(answers, request, reply, { status, message, attempt });
      const form = schema.safeParse(fields);
      if (!form.success) return refuse(problemOf(form.error), 400);
      const mayTry = async () => {
        const wait = await takeTry(buckets, "ops", who.visitor.address, who.visitor.email);
        if (wait > 0) refuse(tooMany(wait), 429);
        return wait === 0;
      };
      const refuseProof = async (problem: string) => {
        await noteRefusal(own, who.visitor, problem);
        refuse(problem);
      };
      await run({ request, reply, who, form: form.data, refuse, refuseProof, mayTry });
    });
  };

  addForm("/password", passwordForm, async ({ request, reply, who, form, refuse, refuseProof, mayTry }) => {
    const { visitor, sessionId, isFresh, hasPassword } = who;
    if (form.next !== form.again) return refuse("the new password and its repetition are not the same");
    const problem = passwordProblem(form.next, visitor.email);
    if (problem !== null) return refuse(problem);
    if (hasPassword) {
      if (!(await mayTry())) return;
      const kept = await findPasswordHash(sql, visitor.operatorId);
      if (kept === null || !(await isPassword(form.current, kept))) {
        return refuseProof("the password of now is not right");
      }
    } else if (!isFresh) {
      return askAgain(answers, request, reply, { who, name: "setting a password", fields: {}, problem: null });
    }
    const passwordHash = await hashPassword(form.next);
    await sql.begin(async (tx) => {
      await savePassword(tx, visitor.operatorId, passwordHash);
      const ended = await endSessions(tx, visitor.operatorId, sessionId);
      const target = `operator ${visitor.email}`;
      await appendAudit(tx, auditEntry(visitor, { action: "own.password", target, after: { sessions_ended: ended } }));
    });
    answers.goOn(reply, ME, "the password is changed, and your other sign-ins have ended");
  });

  addForm("/sessions/end", z.object({ id: z.string().max(100) }), async ({ reply, who: { visitor }, form, refuse }) => {
    const isEnded = await sql.begin(async (tx) => {
      const ended = await endSession(tx, visitor.operatorId, form.id);
      const target = `operator ${visitor.email}`;
      if (ended)
        await appendAudit(tx, auditEntry(visitor, { action: "own.end-session", target, before: { session: form.id } }));
      return ended;
    });
    if (!isEnded) return refuse("this sign-in is not yours, or has ended");
    answers.goOn(reply, ME, "the sign-in has ended");
  });

  addForm("/sessions/end-others", z.object({}), async ({ reply, who: { visitor, sessionId } }) => {
    const ended = await sql.begin(async (tx) => {
      const count = await endSessions(tx, visitor.operatorId, sessionId);
      const after = { sessions_ended: count };
      await appendAudit(
        tx,
        auditEntry(visitor, { action: "own.end-session", target: `operator ${visitor.email}`, after }),
      );
      return count;
    });
    answers.goOn(reply, ME, `${ended} other sign-ins have ended`);
  });

  addTwoFactor(addForm, { answers, ...own });

  app.use((request, response, next) => {
    const { hasTwoFactor } = signedIn(response);
    if (!mustHaveTwoFactor || hasTwoFactor) return next();
    if (request.method !== "GET")
      throw new PageError(403, "everybody needs a second factor here; turn yours on at /ops/me");
    answers.goOn(response as PageReply, ME, "everybody needs a second factor here; turn yours on");
  });
}
