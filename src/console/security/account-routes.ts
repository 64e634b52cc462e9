import type { Express } from "express";
import { accountForms } from "../../frame/sign-in/account-forms.ts";
import { addCloseForm } from "../account/close.ts";
import { type SignInParts, noteRefusal, TRIES } from "../sign-in/guard.ts";
import { addAgreeing } from "../sign-in/terms.ts";
import { requireHolder, type RouteParts } from "../who.ts";
import { addAddressForm } from "./address.ts";
import { addPasswordForm } from "./password.ts";
import { addSessions, SECURITY } from "./sessions.ts";
import { addSecondFactor } from "./second-factor.ts";

/** Adds the routes of holders for themselves: accepting terms, their sign-in, and closing their account. */
export function addAccountRoutes(app: Express, made: RouteParts, doors: SignInParts): void {
  addAgreeing(app, made);
  const parts = {
    answers: made.answers,
    ...doors,
    surface: TRIES,
    ownOf(response: Parameters<typeof requireHolder>[0]) {
      const { person, sessionId, hasTwoFactor } = requireHolder(response);
      return { ...person, sessionId, hasTwoFactor };
    },
    noteRefusal(response: Parameters<typeof requireHolder>[0], reason: string) {
      noteRefusal(doors.log, requireHolder(response).person, reason);
      return Promise.resolve();
    },
  };
  const addForm = accountForms(app, { ...parts, page: SECURITY });
  addSessions(app, addForm, made);
  addPasswordForm(addForm, made);
  addSecondFactor(addForm, made, doors);
  addAddressForm(addForm, made, doors);
  addCloseForm(accountForms(app, { ...parts, page: "/console/account" }), made, doors);
}
