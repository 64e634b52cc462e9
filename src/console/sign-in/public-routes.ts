import type { Express } from "express";
import type { RouteParts } from "../who.ts";
import type { SignInParts } from "./guard.ts";
import { addForgot } from "./forgot.ts";
import { addNewAddress } from "./new-address.ts";
import { addSignIn } from "./sign-in.ts";
import { addSignUp } from "./sign-up.ts";
import { addTerms } from "./terms.ts";

/** Adds the routes that need no sign-in. No response shows whether an address is registered; only a mail does. */
export function addPublicRoutes(app: Express, made: RouteParts, doors: SignInParts): void {
  addSignUp(app, made, doors);
  addSignIn(app, made, doors);
  addForgot(app, made, doors);
  addNewAddress(app, made, doors);
  addTerms(app, made);
}
