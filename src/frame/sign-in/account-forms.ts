import type { Express, Request, Response } from "express";
import type { z } from "zod";
import { prove } from "../../accounts/identity/prove.ts";
import { type Attempt, noteFailure, takeTry, tooMany } from "../../accounts/identity/tries.ts";
import type { Responder } from "../responder.ts";
import { readForm } from "../body.ts";
import { requesterOf } from "../requester.ts";
import { showProblem } from "../problem-page.ts";
import { parseForm } from "../form-problem.ts";
import type { PageReply } from "../view.ts";
import type { CurrentAccount, SignInParts } from "./guard.ts";

/** A form that changes the current account: its fields, and ways to respond. */
export interface AccountForm<Form> {
  request: Request;
  reply: PageReply;
  own: CurrentAccount;
  form: Form;
  /** Shows what is wrong. */
  refuse: (problem: string, status?: number) => void;
  /** Shows that the password or the code is wrong, and records it. */
  refuseProof: (problem: string) => Promise<void>;
  /** Counts an attempt against the limit for passwords. False, with a response sent, if none is left. */
  mayTry: () => Promise<boolean>;
  /**
   * Counts a new password before it is estimated, which takes up to 90 ms of a thread that all share. False, with a response
   * sent, if the person chose too many.
   */
  mayChoose: () => Promise<boolean>;
  /**
   * Checks the password, and the code of accounts with two-factor authentication. False, with a response sent, if
   * wrong.
   */
  isThem: (given: { password: string; code: string }) => Promise<boolean>;
}

/** Adds a form of the account page; its path is below that page. */
export type AddAccountForm = <Form>(
  path: string,
  schema: z.ZodType<Form>,
  run: (sent: AccountForm<Form>) => Promise<void>,
) => void;

/** What the forms of the account page need. */
export interface AccountFormParts extends SignInParts {
  responder: Responder;
  /** The path of the account page, such as `/ops/me`. */
  page: string;
  /** The account that is signed in. */
  accountOf(response: Response): CurrentAccount;
  /** Records a failed check of the password or code. */
  noteRefusal(response: Response, reason: string): Promise<void>;
}

/** Makes the function that adds account forms to the pages of a surface. */
export function accountForms(app: Express, parts: AccountFormParts): AddAccountForm {
  const { responder, buckets, page, surface } = parts;
  const attemptOf = ({ address, email, sessionId }: CurrentAccount): Attempt => {
    return { what: surface, address, who: email, device: sessionId };
  };
  const choiceOf = ({ address, userId }: CurrentAccount): Attempt => {
    return { what: `${surface}-new-password`, address, who: userId, device: userId }; // of all sessions together
  };
  return (path, schema, run) => {
    app.post(page + path, async (request: Request, response: Response) => {
      const reply = response as PageReply;
      const own = parts.accountOf(response);
      const fields = await readForm(request);
      const attempt = { method: "post", action: request.originalUrl, typed: fields } as const;
      const refuse = (message: string, status = 422) =>
        showProblem(responder, request, reply, { status, message, attempt });
      const form = parseForm(schema, fields);
      if (!form.ok) return refuse(form.problem, 400);
      const refuseUntil = (waitSeconds: number) => {
        reply.setHeader("Retry-After", waitSeconds);
        refuse(tooMany(waitSeconds), 429);
      };
      const take = async (counted: Attempt) => {
        const wait = await takeTry(buckets, counted);
        if (wait > 0) refuseUntil(wait);
        return wait === 0;
      };
      const mayTry = () => take(attemptOf(own));
      const mayChoose = () => take(choiceOf(own));
      const refuseProof = async (problem: string) => {
        await parts.noteRefusal(response, problem);
        refuse(problem);
      };
      const refuseTry = async (problem: string) => {
        await noteFailure(buckets, attemptOf(own));
        await refuseProof(problem);
      };
      const isThem = async (given: { password: string; code: string }) => {
        const proof = await prove(parts, own, { ...given, requester: requesterOf(request) });
        if (proof.ok) return true;
        if (proof.waitSeconds > 0) refuseUntil(proof.waitSeconds);
        else await refuseProof(proof.problem);
        return false;
      };
      await run({ request, reply, own, form: form.form, refuse, refuseProof: refuseTry, mayTry, mayChoose, isThem });
    });
  };
}
