import type { Express } from "express";
import type { SignInParts } from "../../frame/sign-in/guard.ts";
import { addSignIn } from "../../frame/sign-in/sign-in.ts";
import type { RouteParts } from "../signed-in.ts";
import { addForgot } from "./forgot.ts";
import { addNewAddress } from "./new-address.ts";
import { addSignUp } from "./sign-up.ts";
import { addTerms } from "./terms.ts";

/** Adds the routes that need no sign-in. No response shows whether an address is registered; only a mail does. */
export function addPublicRoutes(app: Express, made: RouteParts, parts: SignInParts): void {
  addSignUp(app, made, parts);
  addSignIn(app, made.responder, parts, { title: "Sign in", below: "console/sign-in/links" });
  addForgot(app, made, parts);
  addNewAddress(app, made, parts);
  addTerms(app, made);
}
