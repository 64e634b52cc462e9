import { letter, type Letter } from "../mail/letter.ts";
import { LINK } from "../mail/seal.ts";
import { givesApprovals, type OperatorRole } from "./operators/roles.ts";

/** Common values of letters. A typed address is never repeated in a letter to another address. */
interface Links {
  /** The public address, without a slash at its end. */
  site: string;
}

/** A letter with a link that grants access. */
type LetterWithLink = Letter & { link: string };

/** To the address of a sign-up: the link that confirms it. */
export function confirmAddress({ site, token }: Links & { token: string }): LetterWithLink {
  const written = letter("confirm-address", "Confirm your e-mail address", [
    "Someone, most likely you, signed up at Roundhouse with this address. Open this link within a day, in the browser that you signed up with if you can:",
    LINK,
    "If it was not you, do nothing: in another browser the page asks for the password of the sign-up, and after a day it is forgotten. Never enter a password there that someone else gave you.",
  ]);
  return { ...written, link: `${site}/console/confirm?token=${token}` };
}

/** To a registered address that is used for another sign-up. */
export function signUpOfKnown({ site }: Links): Letter {
  return letter("sign-up-of-known", "You have a sign-in at Roundhouse already", [
    "Someone, most likely you, tried to sign up at Roundhouse with this address. There is a sign-in for it already, and nothing was changed.",
    `Sign in here: ${site}/console/sign-in`,
    `If you do not know the password any more: ${site}/console/forgot`,
    "If it was not you, do nothing.",
  ]);
}

/** To a person who forgot their password. */
export function resetPassword({ site, token }: Links & { token: string }): LetterWithLink {
  const written = letter("reset-password", "Choose a new password", [
    "Someone, most likely you, asked for a new password at Roundhouse. This link lets you choose one, once, within an hour:",
    LINK,
    "All your sign-ins end with it; a second factor stays on. If it was not you, do nothing: the password stays as it is.",
  ]);
  return { ...written, link: `${site}/console/reset?token=${token}` };
}

/** To a person whose password was changed. */
export function passwordChanged({ site, surface }: Links & { surface: "console" | "ops" }): Letter {
  const advice = {
    console: `If it was not you, choose another password now: ${site}/console/forgot`,
    ops: "If it was not you, have an admin reset it now.",
  }[surface];
  return letter("password-changed", "Your password was changed", [
    "The password of your sign-in at Roundhouse was changed just now, and all other sign-ins have ended.",
    advice,
  ]);
}

/** To a person whose second factor was turned on or off, or who got new backup codes. */
export function factorChanged({
  site,
  surface,
  change,
}: Links & { surface: "console" | "ops"; change: "on" | "off" | "new-codes" }): Letter {
  const text = {
    on: "A second factor was turned on for your sign-in at Roundhouse: from now on it requires a code of your authenticator.",
    off: "The second factor of your sign-in at Roundhouse was turned off: from now on the password alone is enough.",
    "new-codes": "New backup codes were made for your sign-in at Roundhouse; those before them no longer work.",
  }[change];
  const subject = {
    on: "Your second factor is on",
    off: "Your second factor was turned off",
    "new-codes": "You have new backup codes",
  }[change];
  const advice = {
    console: `If it was not you, change your password now: ${site}/console/security`,
    ops: "If it was not you, have an admin reset your password and second factor now.",
  }[surface];
  return letter("second-factor-changed", subject, [text, advice]);
}

/** To a person for whom someone gave the right password and several wrong codes; `page` is where it is changed. */
export function codesGuessed({ site, page }: Links & { page: string }): Letter {
  return letter("second-factor-guessed", "Wrong codes for your second factor", [
    "Someone gave the right password of your sign-in at Roundhouse, and then several wrong codes of the second factor. They did not get in.",
    `If it was not you, they know your password. Change it now: ${site}${page}`,
    "More wrong codes make the waiting time between tries longer. A browser in which you signed in before is not affected.",
  ]);
}

/** To a person who lost their second factor, and whose second factor an operator turned off. */
export function factorTakenOff(): Letter {
  return letter("second-factor-changed", "Your second factor was turned off", [
    "An operator turned the second factor of your sign-in at Roundhouse off, as was asked for in your name, and ended your sign-ins. From now on the password alone is enough; turn another one on soon.",
    "If you did not ask for it, contact the operator of this service immediately.",
  ]);
}

/** To the new address of a person: the link that confirms it. */
export function proveNewAddress({ site, token }: Links & { token: string }): LetterWithLink {
  const written = letter("prove-new-address", "Confirm your new e-mail address", [
    "Someone, most likely you, wants to use this address for their account at Roundhouse. Open this link within a day to confirm it:",
    LINK,
    "If it was not you, do nothing.",
  ]);
  return { ...written, link: `${site}/console/new-email?token=${token}` };
}

/** To a requested new address that belongs to another account. */
export function newAddressIsTaken({ site }: Links): Letter {
  return letter("new-address-is-taken", "This address has an account already", [
    "Someone, most likely you, wanted to use this address for another account at Roundhouse. It has an account already, and nothing was changed.",
    `Sign in to that one here: ${site}/console/sign-in`,
  ]);
}

/** To the current address, when a change is requested. */
export function addressWillChange({ site }: Links): Letter {
  return letter("address-will-change", "A change of your e-mail address was asked for", [
    "Someone who is signed in to your account at Roundhouse, and knows its password, wants to use another e-mail address. It changes once the link in the mail to that address is opened.",
    `If it was not you, choose another password now, which also stops the change: ${site}/console/forgot`,
  ]);
}

/** To the old address, after a change. */
export function addressChanged(): Letter {
  return letter("address-changed", "Your e-mail address was changed", [
    "Your account at Roundhouse is reached under another e-mail address from now on. This one no longer signs in.",
    "If it was not you, contact the operator of this service immediately: this mail shows that the address was yours.",
  ]);
}

/** To a person who closed their account. */
export function accountClosed({ accountId }: { accountId: bigint }): Letter {
  return letter("account-closed", "Your account is closed", [
    `Your account ${accountId} at Roundhouse was closed just now, with your password. Its keys no longer work, its plan has ended, and this address is forgotten there.`,
    "What was paid and bought stays in the books under the number alone, as the law wants it.",
  ]);
}

/** To a person who signed in from a browser that was not used before. */
export function signInFromNewDevice({
  site,
  surface,
  at,
  browser,
  address,
}: Links & { surface: "console" | "ops"; at: string; browser: string; address: string }): Letter {
  const advice = {
    console: `If it was not you, choose another password now, which also ends every sign-in: ${site}/console/forgot`,
    ops: `If it was not you, change your password now, which also ends your other sign-ins, and inform an admin: ${site}/ops/me`,
  }[surface];
  return letter("new-device", "New sign-in at Roundhouse", [
    `Someone, most likely you, signed in at ${site}/${surface} from a browser in which you had not signed in before.`,
    `When: ${at}\nBrowser: ${browser}\nNetwork address: ${address}`,
    "If it was you, do nothing.",
    advice,
  ]);
}

/** What gives another person control of a staff sign-in, or changes what it may do. */
export type StaffChange =
  "created" | "disabled" | StaffReset | { role: OperatorRole; before: OperatorRole } | { factor: "on" };

/** What another person resets for a member of staff: `second-factor` is turning it off, `enabled` ends `disabled`. */
export type StaffReset = "password" | "second-factor" | "enabled";

/** To a member of staff whose sign-in another person disabled. */
export function staffDisabled({ by }: { by: string }): Letter {
  return letter("sign-in-disabled", "Your sign-in was disabled", [
    `Your sign-in at Roundhouse was disabled by ${by}, and all your sign-ins have ended. An admin can enable it again.`,
    `If you did not expect this, inform another admin than ${by} immediately, in another way than by mail.`,
  ]);
}

/** To a member of staff whose sign-in another person reset or enabled: an admin, or a user of the server. */
export function staffReset({ what, by }: { what: StaffReset; by: string }): Letter {
  const ended = `by ${by}, and all your sign-ins have ended.`;
  const wait = `For 24 hours you cannot approve anything${what === "enabled" ? "" : `, and never the work of ${by}`}.`;
  const advice = `If you did not ask for it, inform another admin than ${by} immediately, in another way than by mail.`;
  if (what === "enabled") {
    const text = `Your sign-in at Roundhouse, which was disabled, was enabled by ${by}. Your password is the one from before.`;
    return letter("sign-in-enabled", "Your sign-in was enabled", [text, wait, advice]);
  }
  if (what === "password") {
    const text = `The password of your sign-in at Roundhouse was reset ${ended} ${by} knows the new one: change it when you have signed in.`;
    return letter("password-changed", "Your password was reset", [text, wait, advice]);
  }
  const text = `The second factor of your sign-in at Roundhouse was turned off ${ended} From now on the password alone is enough; turn another one on soon.`;
  return letter("second-factor-changed", "Your second factor was turned off", [text, wait, advice]);
}

/** To every admin: a member of staff was created, disabled, enabled or reset, has another role, or turned a second factor on. */
export function operatorChanged({ email, what, by }: { email: string; what: StaffChange; by: string }): Letter {
  if (typeof what === "object" && "factor" in what) {
    return letter("operator-changed", "The sign-in of a member of staff was changed", [
      `Two-factor authentication of ${email} was turned on by ${by}. From now on they can approve the work of others, if their role may.`,
      "If you did not expect this, ask them in another way than by mail. If it was not them, someone knows their password: reset their password and second factor, and read the audit log.",
    ]);
  }
  if (typeof what === "object") {
    return letter("operator-changed", "The role of a member of staff was changed", [
      `${email} is ${what.role} now, and was ${what.before}. ${by} changed it.${givesApprovals(what) ? " For 24 hours they cannot approve anything." : ""}`,
      "If you did not agree on this, disable both sign-ins and read the audit log.",
    ]);
  }
  if (what === "disabled") {
    return letter("operator-changed", "The sign-in of a member of staff was changed", [
      `The sign-in of ${email} was disabled by ${by}, and their sign-ins have ended.`,
      `If you did not agree on this, ask both in another way than by mail, and read the audit log: someone else may act as ${by}.`,
    ]);
  }
  const change = {
    created: `${email} was added to the staff by ${by}.`,
    enabled: `The sign-in of ${email} was enabled by ${by}.`,
    password: `The password of ${email} was reset by ${by}.`,
    "second-factor": `Two-factor authentication of ${email} was turned off by ${by}.`,
  }[what];
  return letter("operator-changed", "The sign-in of a member of staff was changed", [
    `${change} For 24 hours they cannot approve anything${what === "enabled" ? "" : `, and never the work of ${by}`}.`,
    "If you did not agree on this, disable both sign-ins and read the audit log.",
  ]);
}
