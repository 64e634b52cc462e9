import type { IncomingMessage } from "node:http";
import type { Express, Request, Response } from "express";
import { z } from "zod";
import type { Responder } from "../responder.ts";
import { isMultipart } from "../body.ts";
import { PageError } from "../errors.ts";
import { backOf, fieldsOf } from "../problem-page.ts";
import { byCertainty, type SentForm } from "../routes.ts";
import type { PageReply } from "../view.ts";
import { formOf, queryOf, typedPassword } from "./public-forms.ts";

/** What the person of a session has to do if they signed in, or gave their password, too long ago. */
export type StepUp =
  /** Enter the password, and a code if two-factor authentication is on. */
  | { kind: "proof"; email: string; hasTwoFactor: boolean }
  /** Have a new link printed: they signed in by a link and have no password. */
  | { kind: "link" }
  /** Turn on two-factor authentication at this page, however fresh the sign-in is. */
  | { kind: "enroll"; page: string };

/** What an action requires before it runs. */
export interface Requirement {
  /** Whether the person signed in, or gave their password, recently. */
  isFresh: boolean;
  stepUp: StepUp;
  /** The action as the page names it. */
  name: string;
}

/** Checks a password and a code; null if both are right, else the message to show. */
export type Confirm = (given: { password: string; code: string; request: IncomingMessage }) => Promise<string | null>;

const TITLES = {
  proof: "Confirm that it is you",
  link: "Confirm that it is you",
  enroll: "Two-factor authentication is required",
} as const;

/** Rows and characters of the summary of a form. The form itself is carried whole; with the password it has to stay below its limit. */
const MOST_SHOWN = 20;
const LONGEST_SHOWN = 200;

/**
 * Whether an action may run now. If not, responds with a page that asks for what is missing and carries the form's fields,
 * so that the form is not lost. A given proof is checked even if none is needed.
 */
export async function ensureProven(
  responder: Responder,
  request: Request,
  reply: PageReply,
  {
    sent,
    requirement,
    confirm,
  }: { sent: Pick<SentForm, "fields" | "proof">; requirement: Requirement; confirm: Confirm },
): Promise<boolean> {
  let problem: string | null = null;
  if (requirement.stepUp.kind !== "enroll") {
    if (sent.proof.password !== "" || sent.proof.code !== "") {
      problem = await confirm({ ...sent.proof, request });
      if (problem === null) return true;
    } else if (requirement.isFresh) return true;
  }
  const form = { action: request.originalUrl, fields: fieldsOf(sent.fields), problem };
  showStepUp(responder, request, reply, { requirement, ...form }, requirement.stepUp.kind === "enroll" ? 422 : 403);
  return false;
}

/** What the dialog of src/frame/scripts/step-up.js needs from a surface. */
export interface StepUpParts<Action extends { path: string }> {
  responder: Responder;
  actions: readonly Action[];
  /** What an action requires of the person who is signed in; null if nothing, or if they may not do it at all. */
  requirementOf(action: Action, response: Response): Requirement | null;
  confirm(response: Response, given: Parameters<Confirm>[0]): Promise<string | null>;
}

const query = z.object({ for: z.string().max(2_000) });
const proofForm = z.object({
  for: z.string().max(2_000),
  _password: typedPassword,
  _code: z.string().max(100).default(""),
});

/**
 * Adds `/step-up` below a surface, for its dialog: GET returns the page that asks for what an action requires, or 204 if
 * it may run now; POST checks the proof and redirects, after which the original form is sent.
 */
export function addStepUp<Action extends { path: string }>(app: Express, parts: StepUpParts<Action>): void {
  const { responder } = parts;
  const { base } = responder.surface;
  const path = `${base}/step-up`;
  const requirementFor = (target: string, response: Response): Requirement | null => {
    const action = actionAt(parts.actions, target.startsWith(base) ? target.slice(base.length) : "");
    return action === null ? null : parts.requirementOf(action, response);
  };

  app.get(path, (request, response) => {
    const { for: target } = queryOf(request, query);
    const requirement = requirementFor(target, response);
    if (requirement === null || (requirement.isFresh && requirement.stepUp.kind !== "enroll")) {
      return void response.status(204).end();
    }
    const form = { action: path, fields: [{ name: "for", value: target, isSecret: false }], problem: null };
    showStepUp(responder, request, response as PageReply, { requirement, ...form }, 200);
  });

  app.post(path, async (request, response) => {
    const { for: target, _password: password, _code: code } = await formOf(request, proofForm);
    const requirement = requirementFor(target, response);
    if (requirement === null) throw new PageError(404, "there is no action under this address");
    const problem = await parts.confirm(response, { password, code, request });
    if (problem === null) return responder.redirect(response as PageReply, base, "");
    const form = { action: path, fields: [{ name: "for", value: target, isSecret: false }], problem };
    showStepUp(responder, request, response as PageReply, { requirement, ...form }, 403);
  });
}

function showStepUp(
  responder: Responder,
  request: Request,
  reply: PageReply,
  shown: {
    requirement: Requirement;
    action: string;
    fields: { name: string; value: string; isSecret: boolean }[];
    problem: string | null;
  },
  status: number,
): void {
  const { requirement, fields, ...form } = shown;
  const { stepUp, name } = requirement;
  const { base } = responder.surface;
  const back = backOf(base, request);
  const isDialog = form.action === `${base}/step-up`;
  const visible = isDialog ? [] : fields.filter(({ value, isSecret }) => !isSecret && value !== "");
  const summary = visible.slice(0, MOST_SHOWN).map(({ name: field, value }) => ({
    name: field.replaceAll(/[_-]/g, " "),
    value: value.length > LONGEST_SHOWN ? `${value.slice(0, LONGEST_SHOWN)}…` : value,
  }));
  const data = {
    ...form,
    isMultipart: !isDialog && isMultipart(request),
    stepUp,
    name,
    fields,
    base,
    back,
    summary,
    hidden: visible.length - summary.length,
  };
  const title = TITLES[stepUp.kind];
  responder.show(request, reply, { template: "frame/sign-in/step-up", width: "reading", title, data }, status);
}

/** The action of a path below the surface, parameters filled; null if there is none. */
export function actionAt<Action extends { path: string }>(actions: readonly Action[], path: string): Action | null {
  const parts = path.split("/");
  const matches = (action: Action) => {
    const pattern = action.path.split("/");
    return pattern.length === parts.length && pattern.every((part, i) => part.startsWith(":") || part === parts[i]);
  };
  return actions.filter(matches).toSorted((a, b) => byCertainty(a.path, b.path))[0] ?? null;
}
