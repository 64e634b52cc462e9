import { randomBytes } from "node:crypto";
import type { Decided, Made, Refusal } from "../../audit/decision.ts";
import type { Transaction } from "../../db/client.ts";
import {
  countAdmins,
  deleteTwoFactor,
  findOperator,
  insertOperator,
  type Operator,
  saveDisabled,
  savePassword,
  saveRole,
} from "./operator-store.ts";
import {
  mailAdmins,
  mailDisabling,
  noteOperatorChange,
  noteReset,
  saveOperatorChange,
  wasJustMailed,
} from "./operator-change-store.ts";
import { withdrawLinks } from "./link-store.ts";
import { hashPassword } from "../identity/password.ts";
import { givesApprovals, type OperatorRole } from "./roles.ts";
import { endSessions } from "../identity/session-store.ts";

/** A decision on a member of staff. */
export type OperatorDecision = Decided<{ email: string; after: object }>;

type Who = { email: string } | { id: string };

/** An initial password: 120 random bits in groups that can be read aloud. */
function makePassword(): string {
  const letters = randomBytes(15).toString("hex");
  return (letters.match(/.{5}/g) ?? []).join("-");
}

/** Creates an operator. Refused if the address is an operator's already, or a holder's. */
export async function createOperator(
  tx: Transaction,
  given: { email: string; role: OperatorRole; passwordHash: string; by: string },
): Promise<OperatorDecision> {
  const made = await insertOperator(tx, given);
  const email = given.email.toLowerCase();
  if (made !== null) await noteOperatorChange(tx, { userId: made.id, email, what: "created", by: given.by });
  if (made !== null) return changed(email, `is ${given.role} now`, null, { role: given.role });
  if ((await findOperator(tx, { email })) !== null) return { ok: false, problem: `${email} is an operator already` };
  return {
    ok: false,
    problem: `${email} signs in at the console; an operator needs an address that holds no account`,
  };
}

/**
 * Gives an operator another role and mails the admins. If only the new one may approve, approvals wait for 24 hours. Refused
 * if the role is not `was` (null: any), if no admin would be left, or if the same change was mailed within two minutes.
 */
export async function changeRole(
  tx: Transaction,
  who: Who,
  { role, was, by }: { role: OperatorRole; was: string | null; by: string },
): Promise<OperatorDecision> {
  const admins = await countAdmins(tx);
  const operator = await findOperator(tx, who);
  if (operator === null) return unknown(who);
  if (was !== null && was !== operator.role) {
    return { ok: false, problem: `${operator.email} was made ${operator.role} meanwhile; look again` };
  }
  if (role === operator.role) return { ok: false, problem: `${operator.email} is ${role} already` };
  if (isLastAdmin(operator, admins)) return lastAdmin(operator);
  const { id: userId, email } = operator;
  const change = { role, before: operator.role };
  if (await wasJustMailed(tx, { userId, what: change, by })) return repeated(operator);
  await mailAdmins(tx, { userId, email, what: change, by }); // an admin who loses the role, too
  if (givesApprovals(change)) await saveOperatorChange(tx, { userId, what: "role", by });
  await saveRole(tx, userId, role);
  return changed(email, `is ${role} now`, { role: operator.role }, { role });
}

/**
 * Disables an operator and ends their sessions, or enables them again; mails them and the admins. Refused if no admin would
 * be left. Enabling is refused if it was mailed within two minutes; disabling is urgent, and its mails are always sent.
 */
export async function changeDisabled(
  tx: Transaction,
  who: Who,
  { isDisabled, by }: { isDisabled: boolean; by: string },
): Promise<OperatorDecision> {
  const admins = await countAdmins(tx);
  const operator = await findOperator(tx, who);
  if (operator === null) return unknown(who);
  if ((operator.disabledAt !== null) === isDisabled) {
    return { ok: false, problem: `${operator.email} is ${isDisabled ? "disabled" : "active"} already` };
  }
  if (isDisabled && isLastAdmin(operator, admins)) return lastAdmin(operator);
  const { id: userId, email } = operator;
  if (!isDisabled && (await wasJustMailed(tx, { userId, what: "enabled", by }))) return repeated(operator);
  if (isDisabled) await mailDisabling(tx, { userId, email, by });
  else await noteReset(tx, { userId, email, what: "enabled", by });
  await saveDisabled(tx, userId, isDisabled);
  const ended = isDisabled ? await signOut(tx, userId) : 0;
  const outcome = isDisabled ? "cannot sign in any more" : "can sign in again";
  return changed(email, outcome, { disabled: !isDisabled }, { disabled: isDisabled, sessions_ended: ended });
}

/** Ends all sessions of an operator. */
export async function endAllSessions(tx: Transaction, who: Who): Promise<OperatorDecision> {
  const operator = await findOperator(tx, who);
  if (operator === null) return unknown(who);
  const ended = await signOut(tx, operator.id);
  return changed(operator.email, "is signed out everywhere", null, { sessions_ended: ended });
}

/** Gives an operator a new password, ends their sessions and mails them and the admins. */
export async function resetPassword(
  tx: Transaction,
  who: Who,
  passwordHash: string,
  by: string,
): Promise<OperatorDecision> {
  const operator = await findOperator(tx, who);
  if (operator === null) return unknown(who);
  await savePassword(tx, operator.id, passwordHash);
  await noteReset(tx, { userId: operator.id, email: operator.email, what: "password", by });
  const ended = await signOut(tx, operator.id);
  return changed(operator.email, "has a new password", null, { sessions_ended: ended });
}

/**
 * Turns off the lost second factor of an operator, ends their sessions and mails them and the admins. Refused if the same
 * change was mailed within two minutes.
 */
export async function resetTwoFactor(tx: Transaction, who: Who, by: string): Promise<OperatorDecision> {
  const operator = await findOperator(tx, who);
  if (operator === null) return unknown(who);
  if (!operator.hasTwoFactor) return { ok: false, problem: `${operator.email} has no second factor` };
  if (await wasJustMailed(tx, { userId: operator.id, what: "second-factor", by })) return repeated(operator);
  await deleteTwoFactor(tx, operator.id);
  await noteReset(tx, { userId: operator.id, email: operator.email, what: "second-factor", by });
  const ended = await signOut(tx, operator.id);
  const after = { two_factor: false, sessions_ended: ended };
  return changed(operator.email, "has no second factor any more", { two_factor: true }, after);
}

/** Makes an initial password, with the hash to store. */
export async function makeHashedPassword(): Promise<{ password: string; passwordHash: string }> {
  const password = makePassword();
  return { password, passwordHash: await hashPassword(password) };
}

/** Revokes the links of a person and ends their sessions. Returns the number of sessions. */
async function signOut(tx: Transaction, userId: string): Promise<number> {
  await withdrawLinks(tx, userId);
  return endSessions(tx, userId);
}

function isLastAdmin(operator: Operator, admins: number): boolean {
  return operator.role === "admin" && operator.disabledAt === null && admins === 1;
}

function changed(
  email: string,
  outcome: string,
  before: object | null,
  after: object,
): Made<{ email: string; after: object }> {
  return { ok: true, target: `operator ${email}`, before, after, message: `${email} ${outcome}`, email };
}

function lastAdmin({ email }: Operator): Refusal {
  return { ok: false, problem: `${email} is the last admin; make another first` };
}

function repeated({ email }: Operator): Refusal {
  return { ok: false, problem: `you made the same change of ${email} within two minutes; wait two minutes` };
}

function unknown(who: Who): Refusal {
  const problem = "email" in who ? `there is no operator ${who.email}` : "there is no such operator";
  return { ok: false, problem, isUnknown: true };
}
