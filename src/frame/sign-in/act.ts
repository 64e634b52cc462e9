import type { Request } from "express";
import type { z } from "zod";
import { hasAudit } from "../../audit/store.ts";
import type { Sql } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import type { Log } from "../../log.ts";
import type { FileInput } from "../body.ts";
import type { Responder } from "../responder.ts";
import { type Done, type Params, type SentForm, takeForm } from "../routes.ts";
import type { PageReply } from "../view.ts";
import { type Confirm, ensureProven, type Requirement } from "./step-up.ts";

/** An action as the person who is signed in sends it. */
export interface SentAction<Form> {
  /** Its name in the audit log. */
  name: string;
  form: z.ZodType<Form>;
  file?: FileInput | undefined;
  /** Who acts, for the log. */
  actor: Record<string, string>;
  /** What has to be true before the proof is asked for. False, with a response sent, if it is not. */
  mayGoOn?: (sent: SentForm) => Promise<boolean>;
  requirement: Requirement | null;
  confirm: Confirm;
  run(sent: { params: Params; form: Form }): Promise<Done>;
}

/** Performs an action if its sender has proven what it requires, and checks that it left an audit entry. */
export async function act<Form>(
  { responder, sql, log }: { responder: Responder; sql: Sql; log: Log },
  request: Request,
  reply: PageReply,
  { name, actor, mayGoOn, requirement, confirm, ...action }: SentAction<Form>,
): Promise<void> {
  const { requestId } = reply.locals;
  const logFields = { request_id: requestId, ...actor, action: name };

  /** If the database fails after the action, the response is still sent: it may hold a secret that is shown only once. */
  function isAudited(): Promise<boolean> {
    return hasAudit(sql, requestId).catch((error: unknown) => {
      log.warn(logFields, `the audit log could not be checked for this action: ${reasonOf(error)}`);
      return true;
    });
  }

  await takeForm(responder, request, reply, {
    ...action,
    async mayGoOn(sent) {
      if (mayGoOn !== undefined && !(await mayGoOn(sent))) return false;
      return requirement === null || ensureProven(responder, request, reply, { sent, requirement, confirm });
    },
    async wasDone() {
      if (!(await isAudited())) {
        throw new Error(
          `${name} was done and left nothing in the audit log; it must add an entry in its transaction, or return didNothing`,
        );
      }
      log.info(logFields, "action done");
    },
  });
}
