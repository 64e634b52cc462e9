/** Somebody at the desk. */
export interface Person {
  id: string;
  email: string;
  /** Whether they sign in with a second factor. */
  hasTwoFactor: boolean;
}

/** Whether somebody may approve: `onePerson` is written down where they approve what is their own. */
export type Approval =
  { ok: true; onePerson: boolean } | { ok: false; problem: string; next?: { label: string; href: string } };

/**
 * Whether somebody may approve what others did. Whoever entered the line or decided on it may not, unless the team was
 * said to be of one person; and nobody may without a second factor.
 *
 * @example
 * const ann = { id: "1", email: "ann@example.com", hasTwoFactor: true };
 * approvalOf(ann, { enteredById: "2", decidedById: "2" }, { isOnePerson: false }); // => { ok: true, onePerson: false }
 * approvalOf(ann, { enteredById: "2", decidedById: "1" }, { isOnePerson: true }); // => { ok: true, onePerson: true }
 * approvalOf(ann, { enteredById: "1", decidedById: "2" }, { isOnePerson: false }).ok; // => false
 * approvalOf({ ...ann, hasTwoFactor: false }, { enteredById: "2", decidedById: "2" }, { isOnePerson: false }).ok; // => false
 */
export function approvalOf(
  person: Person,
  of: { enteredById: string; decidedById: string },
  { isOnePerson }: { isOnePerson: boolean },
): Approval {
  if (!person.hasTwoFactor) {
    return {
      ok: false,
      problem: "Approving requires two-factor authentication. Turn it on at your own page (/ops/me), then approve.",
      next: { label: "Turn on two-factor authentication", href: "/ops/me" },
    };
  }
  const own =
    of.decidedById === person.id ? "decided on this" : of.enteredById === person.id ? "entered this line" : null;
  if (own === null) return { ok: true, onePerson: false };
  if (isOnePerson) return { ok: true, onePerson: true };
  return { ok: false, problem: `you ${own} yourself: another person has to approve it` };
}
