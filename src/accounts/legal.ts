import { createHash } from "node:crypto";

/** Texts that people accept: at sign-up, and with every purchase. */
export const LEGAL_KINDS = ["terms", "adult", "start-now", "no-withdrawal"] as const;
export type LegalKind = (typeof LEGAL_KINDS)[number];

/** A legal text; its version is the day from which it applies. */
export interface LegalText {
  version: string;
  text: string;
  /** Of the text as UTF-8, hex. */
  sha256: string;
}

/**
 * The terms: one paragraph per line, its heading before the first colon. A changed text needs a new version, because
 * stored consents refer to the old text and all holders must accept the new one.
 */
const TERMS = [
  "What this is: Roundhouse collects rounds of crash games from the houses that publish them, issues forecasts before those rounds, measures the forecasts in public, and serves all of it over an API. We are not a house, take no bets and are paid by no house.",
  "Information only: every forecast, reading and accuracy figure is information. Rounds come from the house's random generator, and past figures show nothing certain about the next round. What you do with the information is your own decision, and nothing here advises a bet.",
  "Age: you are 18 or older, or of legal age in your country if that is higher. If the law forbids what the information is about, you may not use it there.",
  "Your account: it is yours alone. Give an e-mail address at which we can reach you, keep your password and your keys secret, and inform us if one of them was disclosed. Everything that is done with your keys counts as done by you until you revoke them.",
  "Your own products: you may build products on the data and sell them: charts, statistics, models, alerts, research. Name the source of the data in them.",
  "No resale of the raw feed: you may not pass on, sell or mirror our responses unchanged, nor as a file or a service that replaces ours, whether for money or not.",
  "Keys: a key belongs on your server. Do not put one into an app, a web page or any other code that others receive: they could use up your quota. A key that we find in public is revoked.",
  "Limits: each plan has limits of calls per second, day and month, which its page shows. Max has no daily limit; a technical ceiling protects the service for everyone, far above fair use, and a call above it gets a response that names it.",
  "Paying: plans are paid in advance from the balance of your account, which you top up. The balance is in US dollars. One USDT counts as one US dollar, whatever its price elsewhere; another currency counts as the amount that arrives here in US dollars.",
  "Purchases are final: a plan begins with its purchase and lasts for the days that its page shows. Nothing renews automatically. A purchase is not reversed; your rights under the law of your country stay.",
  "The balance: it buys plans here and nothing else. It earns no interest, cannot be transferred to another account and cannot be paid out; so top up only what you intend to spend.",
  "Closing: you may close your account at any time. Its keys end immediately, and so do its plan and its balance. We may suspend an account that breaks these terms, with the reason, and close one that continues to do so.",
  "Availability: houses change, fail and publish wrong data, and so a table may be late, paused or marked with a notice. We repair what we can and report what we cannot. We are liable for intent and gross negligence; beyond that, as far as the law allows, for no more than you paid in the last twelve months.",
  "Changes of the API: fields may be added at any time. A change that would break a program is made in a new version of the API, and the previous version then works for at least six months; a mail, and headers in every response, announce it in time.",
  "Changes of these terms: a new version is published here with its date, and you are asked to accept it before your next key or purchase. Until then what you have continues under the version that you accepted.",
  "Your data: we store your e-mail address, what you accepted and when, your sign-ins, your calls as counts, and your payments. You can download the data of your account as a file; the page of your account lists what it contains. After you close the account, the ledger and the audit log stay as the law requires, under a number instead of your e-mail address.",
  "Law: these terms are a contract with the operator who is named with them, and the law at the seat of the operator applies; as a consumer you keep the mandatory rights of the law where you live.",
].join("\n");

const TEXTS: Readonly<Record<LegalKind, LegalText>> = {
  terms: dated("2026-11-29", TERMS),
  adult: dated("2026-11-21", "I am 18 years old or older."),
  "start-now": dated(
    "2026-11-25",
    "I ask for the plan to begin immediately, before the period in which I could withdraw from the purchase has ended.",
  ),
  "no-withdrawal": dated(
    "2026-11-21",
    "I know that I lose my right to withdraw from the purchase as soon as the plan has begun.",
  ),
};

/** The current text of a kind. */
export function legalText(kind: LegalKind): LegalText {
  return TEXTS[kind];
}

/**
 * Paragraphs of the terms with their headings, for a page.
 *
 * @example
 * paragraphsOf("Age: you are 18.\nKeys: hidden: always."); // => [{ heading: "Age", text: "You are 18." }, { heading: "Keys", text: "Hidden: always." }]
 */
export function paragraphsOf(text: string): { heading: string; text: string }[] {
  return text.split("\n").map((line) => {
    const [heading = "", ...rest] = line.split(": ");
    const [first = "", ...letters] = rest.join(": ");
    return { heading, text: first.toUpperCase() + letters.join("") };
  });
}

function dated(version: string, text: string): LegalText {
  return { version, text, sha256: createHash("sha256").update(text, "utf8").digest("hex") };
}
