import type { Json } from "../../audit/entry.ts";
import type { KeptEntry } from "../../audit/store.ts";
import { linksOf, type Part } from "./links.ts";

/**
 * What each action did, after the name of its actor. `{target}` is the object with its link, `{after.field}` and
 * `{before.field}` are values of the entry, `{account after.field}` is an object by its id. A part in square brackets is
 * left out if the entry lacks one of its values.
 */
export const PHRASES: Readonly<Record<string, string>> = {
  "account.close": "closed {target}",
  "account.create": "created {target}",
  "account.end-plan": "ended the plan without an end of {target}",
  "account.mails": "changed the mail settings of {target}",
  "account.open": "opened {target}",
  "account.reset-two-factor": "removed the second factor of {target}",
  "account.restore": "restored {target}",
  "account.suspend": "suspended {target}",
  "alert.end-snooze": "ended the snooze of {target}",
  "alert.snooze": "snoozed {target}[ until {after.until}]",
  "bank.import.preview": "previewed {target}",
  "bank.import.run": "imported {target}[: {after.added} new lines]",
  "bank.line.add": "entered {target}",
  "bank.line.hold": "put {target} in suspense[: {after.usd} USD]",
  "bank.line.match":
    "matched {target}[ with top-up {after.reference}][ of {after.usd} USD][ to {account after.account}]",
  "bank.match.approve":
    "approved [top-up {after.reference} of {after.usd} USD for {account after.account} from ]{target}",
  "bank.match.approve.refused": "was refused approval of {target}",
  "bank.match.reject": "rejected {target}[ of {account after.account}]",
  "bank.match.take-back": "withdrew the match of {target}",
  "bank.return.approve": "approved the return of {target}[: {after.usd} USD]",
  "bank.return.approve.refused": "was refused approval of the return of {target}",
  "bank.return.ask": "requested the return of {target}",
  "bank.return.stop": "cancelled the return of {target}",
  "calibration.cancel": "cancelled {target}",
  "calibration.compare": "compared {target}",
  "calibration.label": "edited the note and tags of {target}",
  "calibration.promote": "promoted {target}",
  "calibration.resume": "resumed {target}",
  "calibration.start": "started {target}[ with {after.model}]",
  "call.try": "tried a call with {target}",
  "conflict.decide": "decided {target}",
  "database.backup": "backed up the database to {target}",
  "database.restore": "restored the database from {target}",
  "deposits.read-again": "read the deposits of {target} again",
  "gap.close": "closed {target}",
  "gap.open": "reopened {target}",
  "house.close-circuit": "closed the circuit breaker of {target}",
  "house.pause": "paused {target}[ until {after.until}]",
  "house.probe": "probed {target}",
  "house.resume": "resumed {target}",
  "import.begin": "started an import into {target}",
  "import.end": "finished an import into {target}",
  "key.create": "created {target}[, {after.name}]",
  "key.revoke": "revoked {target}[, ending in {after.last4}]",
  "key.rotate": "rotated {target}",
  "log.declare": "declared {target}",
  "mail.read": "read {target}",
  "mail.retry": "retried {target}",
  "mail.retry-all": "retried {target}",
  "notice.end": "closed the notice on {target}",
  "notice.write": "published a notice on {target}",
  "operator.create": "created {target}[ as {after.role}]",
  "operator.disable": "disabled {target}",
  "operator.enable": "enabled {target}",
  "operator.end-sessions": "ended the sessions of {target}",
  "operator.reset-password": "reset the password of {target}",
  "operator.reset-two-factor": "removed the second factor of {target}",
  "operator.role": "changed the role of {target}[ from {before.role}][ to {after.role}]",
  "order.ask": "checked the payment of {target}",
  "own.ask-email": "requested a new e-mail address",
  "own.backup-codes": "created new backup codes",
  "own.email": "changed the e-mail address",
  "own.end-session": "ended sessions of {target}",
  "own.password": "changed the password of {target}",
  "own.reset-password": "reset the password of {target}",
  "own.two-factor": "changed the second factor of {target}",
  "payload.reread": "reread {target}",
  "plan.buy": "bought a plan for {target}[: {after.plan}]",
  "plan.downgrade": "downgraded the plan of {target}[ to {after.plan}]",
  "plan.renew": "renewed the plan of {target}[: {after.plan}]",
  "plan.set": "changed {target}",
  "plan.upgrade": "upgraded the plan of {target}[ to {after.plan}]",
  "quarantine.discard": "discarded {target}",
  "quarantine.release": "released {target}",
  "queue.discard": "discarded failed runs of {target}[: {after.runs}]",
  "queue.pause": "paused {target}[ until {after.until}]",
  "queue.resume": "resumed {target}",
  "queue.retry": "retried failed runs of {target}[: {after.runs}]",
  "reversal.approve": "approved the reversal of {target}",
  "reversal.approve.refused": "was refused approval of the reversal of {target}",
  "reversal.decline": "declined the reversal of {target}",
  "reversal.propose": "proposed the reversal of {target}",
  "round.revise": "corrected {target}",
  "session.begin": "signed in as {target}",
  "session.end": "signed out",
  "session.link": "created a sign-in link for {target}",
  "session.refused": "was refused a sign-in as {target}",
  "table.repair": "repaired {target}",
  "table.reset-newest": "reset the newest round of {target}",
  "terms.accept": "accepted the terms for {target}",
  "topup.announce": "announced a bank transfer for {target}",
  "topup.begin": "started a top-up of {target}",
  "topup.cancel": "cancelled {target}",
  "topup.demo": "made a demo payment for {target}",
};

/** What holders do to their own account, whose entries name the account as their object. */
const OWN_PHRASES: Readonly<Record<string, string>> = {
  "account.close": "closed the account",
  "account.open": "opened the account",
  "call.try": "tried a call",
  "key.create": "created key {after.key}[, ending in {after.last4}]",
  "key.revoke": "revoked key {after.key}[, ending in {after.last4}]",
  "key.rotate": "rotated key {before.key}[, ending in {before.last4}]",
  "topup.announce": "announced a bank transfer[ of {after.announced}]",
  "topup.cancel": "cancelled a top-up",
  "topup.demo": "made a demo payment[ of {after.usd} USD]",
};

/**
 * An entry as a sentence of parts, some of which are links. An unknown action is named as it is.
 *
 * @example
 * // house.pause of "house alpha" with after { until: "14:00" } by ann@example.com because of maintenance:
 * // "ann@example.com paused house alpha until 14:00: maintenance"
 */
export function sentenceOf(
  entry: Pick<KeptEntry, "actor" | "action" | "target" | "before" | "after" | "reason">,
): Part[] {
  const phrase = phraseOf(entry);
  const parts: Part[] = [...linksOf(entry.actor).map(capitalized), { text: " ", href: null }];
  for (const [, optional, required = ""] of phrase.matchAll(/\[([^\]]*)\]|([^[]+)/g)) {
    const filled = fill(optional ?? required, entry);
    if (filled !== null) parts.push(...filled);
    else if (optional === undefined) parts.push({ text: required, href: null });
  }
  if (entry.reason !== null) parts.push({ text: `: ${entry.reason}`, href: null });
  return parts;
}

/** The phrase of an action. What someone does to their own account or sign-in leaves that object out. */
function phraseOf({ action, actor, target }: Pick<KeptEntry, "action" | "actor" | "target">): string {
  const phrase = PHRASES[action] ?? `did ${action} to {target}`;
  if (target !== actor && target !== `operator ${actor}`) return phrase;
  return OWN_PHRASES[action] ?? phrase.replace(/ (?:as|for|of) \{target\}/, "");
}

/** An account at the beginning of a sentence; an address and the name of a user of the machine stay as they are. */
function capitalized({ text, href }: Part): Part {
  return { text: text.replace(/^account (?=\d)/, "Account "), href };
}

/** The parts of a phrase with its values; null if one is missing. */
function fill(phrase: string, entry: Pick<KeptEntry, "target" | "before" | "after">): Part[] | null {
  const parts: Part[] = [];
  for (const [, kind, side, field, target, text] of phrase.matchAll(
    /\{(?:(\w+) )?(?:(before|after)\.(\w+))\}|(\{target\})|([^{]+)/g,
  )) {
    if (target !== undefined) parts.push(...linksOf(entry.target));
    else if (text !== undefined) parts.push({ text, href: null });
    else {
      const value = valueOf(side === "before" ? entry.before : entry.after, field ?? "");
      if (value === null) return null;
      parts.push(...(kind === undefined ? [{ text: value, href: null }] : linksOf(`${kind} ${value}`)));
    }
  }
  return parts;
}

/** A field as text; null if there is none. */
function valueOf(side: Json, field: string): string | null {
  if (side === null || typeof side !== "object" || Array.isArray(side)) return null;
  const value = side[field];
  return value === null || value === undefined || typeof value === "object" ? null : shortTime(String(value));
}

/** A time to the minute; any other text as it is. */
function shortTime(text: string): string {
  const [, day, minute] = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}):\d{2}[\d.]*Z$/.exec(text) ?? [];
  return day === undefined ? text : `${day} ${minute} UTC`;
}
