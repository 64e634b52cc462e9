import { readIsoTime } from "../../iso-time.ts";
import { type DecimalMark, type Parsed, parseAmount } from "./statements/amount.ts";
import type { StatementLine } from "./line.ts";

/** A line as it was typed, or as it is in a file. */
export interface TypedLine {
  bank: string;
  bankRef: string;
  valueDate: string;
  amount: string;
  currency: string;
  sender: string;
  remittance: string;
}

const BANK = /^[a-z0-9][a-z0-9 ._-]{0,39}$/;
const [LONGEST_SENDER, LONGEST_TEXT] = [140, 1_000];

/**
 * Checks every field of a line. Returns the line, or all its problems in one text. `currencies` are those that are
 * accepted, `decimalMark` the one that the other lines of its file prove.
 *
 * @example
 * const typed = { bank: "Main", bankRef: "A1", valueDate: "2026-11-20", amount: "10", currency: "usd", sender: "Ann", remittance: "" };
 * checkLine(typed, ["USD"]).value.bank; // => "main"
 * checkLine({ ...typed, valueDate: "22.11.2026" }, ["USD"]).value.valueDate; // => "2026-11-22"
 * checkLine({ ...typed, currency: "GBP" }, ["USD"]); // => { ok: false, problem: "expected one of the currencies USD, got GBP" }
 * checkLine({ ...typed, valueDate: "2026-02-30" }, ["USD"]); // => { ok: false, problem: "expected a value date such as 2026-11-20 or 20.11.2026, got 2026-02-30" }
 */
export function checkLine(
  typed: TypedLine,
  currencies: readonly string[],
  decimalMark: DecimalMark | null = null,
): Parsed<StatementLine> {
  const problems: string[] = [];
  const bank = clean(typed.bank).toLowerCase(); // one bank, one name: a line is entered once by it
  if (!BANK.test(bank)) problems.push("expected a short name of the bank: letters, digits, spaces, . _ -");
  const bankRef = clean(typed.bankRef);
  if (bankRef === "" || bankRef.length > 100)
    problems.push("expected the bank's reference of the line, of 1 to 100 characters");
  const valueDate = isoDate(typed.valueDate.trim());
  if (!isDate(valueDate))
    problems.push(`expected a value date such as 2026-11-20 or 20.11.2026, got ${valueDate.slice(0, 20) || "none"}`);
  const currency = typed.currency.trim().toUpperCase();
  if (!currencies.includes(currency)) {
    problems.push(`expected one of the currencies ${currencies.join(", ")}, got ${currency.slice(0, 10) || "none"}`);
  }
  const amount = parseAmount(typed.amount, currency, decimalMark);
  if (!amount.ok) problems.push(amount.problem);
  const sender = clean(typed.sender);
  if (sender === "" || sender.length > LONGEST_SENDER)
    problems.push(`expected the sender's name, of at most ${LONGEST_SENDER} characters`);
  const remittance = clean(typed.remittance);
  if (remittance.length > LONGEST_TEXT) problems.push(`expected a text of at most ${LONGEST_TEXT} characters`);
  if (!amount.ok || problems.length > 0) return { ok: false, problem: problems.join("; ") };
  return { ok: true, value: { bank, bankRef, valueDate, currency, amountMinor: amount.value, sender, remittance } };
}

/** Removes control characters and collapses spaces. */
function clean(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, " ")
    .trim();
}

/**
 * A date as German, Swiss and Polish banks write it (`22.11.2026`), as 2026-11-22; any other text as it is. Dates with
 * slashes are not read: 03/04/2026 is March or April.
 */
function isoDate(text: string): string {
  const [, day = "", month = "", year = ""] = /^(\d{1,2})\.(\d{1,2})\.(\d{4})$/.exec(text) ?? [];
  return year === "" ? text : `${year}-${month.padStart(2, "0")}-${day.padStart(2, "0")}`;
}

/** Whether a text is a calendar date from 1900 to 2099. */
function isDate(text: string): boolean {
  return /^(?:19|20)\d\d-\d\d-\d\d$/.test(text) && readIsoTime(text) !== null;
}
