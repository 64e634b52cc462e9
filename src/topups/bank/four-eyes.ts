import type { WorkToApprove } from "../../accounts/operators/operator-change-store.ts";
import type { BankLine } from "./line.ts";

/** A member of staff who works on bank transfers. */
export interface Person {
  id: string;
  email: string;
  /** Whether they sign in with two-factor authentication. */
  hasTwoFactor: boolean;
}

/** The people whose work an approval approves: who entered a line, set its rate in suspense and decided on it. */
interface Authors {
  enteredById: string;
  /** Null for a line in USD, whose rate is 1, and for a return, with which the whole amount leaves suspense. */
  heldById: string | null;
  decidedById: string;
}

/** Returns what a decision on a line approves. */
export function workOn(
  { begunAt }: Pick<BankLine, "begunAt">,
  { enteredById, heldById, decidedById }: Authors,
): WorkToApprove {
  return { authors: [enteredById, decidedById, ...(heldById === null ? [] : [heldById])], begunAt };
}

/** Whether a person may approve. `onePerson` is stored when they approve their own decision. */
export type Approval =
  { ok: true; onePerson: boolean } | { ok: false; problem: string; next?: { label: string; href: string } };

/**
 * Returns whether a person may approve a decision. Two-factor authentication is required. The person who entered the
 * line, set its rate in suspense or decided on it may not approve it, unless the team is configured to have one member.
 *
 * @example
 * const ann = { id: "1", email: "ann@example.com", hasTwoFactor: true };
 * approvalOf(ann, { enteredById: "2", heldById: null, decidedById: "2" }, { isOnePerson: false }); // => { ok: true, onePerson: false }
 * approvalOf(ann, { enteredById: "2", heldById: null, decidedById: "1" }, { isOnePerson: true }); // => { ok: true, onePerson: true }
 * approvalOf(ann, { enteredById: "1", heldById: null, decidedById: "2" }, { isOnePerson: false }).ok; // => false
 * approvalOf(ann, { enteredById: "2", heldById: "1", decidedById: "3" }, { isOnePerson: false }).ok; // => false
 * approvalOf({ ...ann, hasTwoFactor: false }, { enteredById: "2", heldById: null, decidedById: "2" }, { isOnePerson: false }).ok; // => false
 */
export function approvalOf(person: Person, of: Authors, { isOnePerson }: { isOnePerson: boolean }): Approval {
  if (!person.hasTwoFactor) {
    return {
      ok: false,
      problem: "Approving requires two-factor authentication. Turn it on at your own page (/ops/me), then approve.",
      next: { label: "Turn on two-factor authentication", href: "/ops/me" },
    };
  }
  const own = partOf(person, of);
  if (own === null) return { ok: true, onePerson: false };
  if (isOnePerson) return { ok: true, onePerson: true };
  return { ok: false, problem: `you ${own} yourself: another person has to approve it` };
}

/** What a person did to a line themselves; null if nothing. */
function partOf({ id }: Person, of: Authors): string | null {
  if (of.decidedById === id) return "decided on this";
  if (of.enteredById === id) return "entered this line";
  return of.heldById === id ? "set the rate of this line" : null;
}
