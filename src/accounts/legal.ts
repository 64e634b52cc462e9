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
  "What this is: Roundhouse collects rounds of crash games from the houses that publish them, issues forecasts before those rounds, measures the forecasts in public, and serves all of it over an API. We are no house, take no bets and are paid by none of them.",
  "Information only: every forecast, reading and accuracy figure is information. Rounds come from the house's random generator, and past figures say nothing certain about the next round. What you do with the information is your own decision, and nothing here advises a bet.",
  "Age: you are 18 or older, or of age where you live if that is later. Where the law forbids what the information is about, you may not use it there.",
  "Your account: it is yours alone. Give an e-mail address at which we reach you, keep your password and your keys to yourself, and tell us when one of them got out. Whatever is done with your keys counts as done by you until you revoke them.",
  "Your own products: you may build products on the data and sell them: charts, statistics, models, alerts, research. Name where the data come from where you show them.",
  "No resale of the raw feed: you may not pass on, sell or mirror our answers as they are, nor as a file or a service that replaces ours, whether for money or not.",
  "Keys: a key belongs on your server. Do not put one into an app, a web page or any other code that others receive: they could use up your quota. A key that we find in public is revoked.",
  "Limits: each plan has its calls a second, a day and a month, as its page says. Max has no daily number; a technical ceiling protects the service for everybody, far above what fair use needs, and whoever reaches it gets an answer that says so.",
  "Paying: plans are paid in advance from the balance of your account, which you top up. The balance is in US dollars. One USDT counts as one US dollar, whatever it costs elsewhere; another currency counts as what arrives here in US dollars.",
  "Purchases are final: a plan begins with its purchase and lasts for the days that its page says. Nothing renews by itself. A purchase is not taken back; what the law of your country gives you beyond that stays yours.",
  "The balance: it buys plans here and nothing else. It earns nothing, cannot be given to another account and cannot be paid out; so top up what you mean to spend.",
  "Closing: you may close your account at any time. Its keys end at once, and so do its plan and its balance. We may suspend an account that breaks these terms, with the reason, and close one that goes on.",
  "Availability: houses change, fail and lie, and so a table may be late, paused or marked with a notice. We mend what we can and say what we cannot. We answer for what we do on purpose or with gross negligence; beyond that, as far as the law allows, for no more than you paid in the last twelve months.",
  "Changes of the API: fields may be added at any time. What would break a program comes under a new version of the API, and the one before it then works for six months at least; a mail, and headers in every answer, say so in time.",
  "Changes of these terms: a new version is shown here with its date, and you are asked to agree to it before your next key or purchase. Until then what you have goes on under the version that you agreed to.",
  "Your data: of you we keep the e-mail address, what you agreed to and when, your sign-ins, your calls as counts, and your payments. You can have all of it as a file. After you close the account, the ledger and the log of what was changed stay as the law wants it, under a number instead of your e-mail address.",
  "Law: these terms are made with the operator who is named beside them, and the law at the operator's seat applies; as a consumer you keep what the law where you live gives you and cannot be agreed away.",
].join("\n");

const TEXTS: Readonly<Record<LegalKind, LegalText>> = {
  terms: dated("2026-11-21", TERMS),
  adult: dated("2026-11-21", "I am 18 years old or older."),
  "start-now": dated(
    "2026-11-21",
    "I ask for the plan to begin at once, before the time in which I could withdraw from the purchase is over.",
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
