/** Crockford's base 32, without I, L, O and U, which are easily misread. */
const LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/**
 * Minimum widths of the account and the sequence, so that every reference is long enough to be recognized in a text.
 */
const [ACCOUNT_WIDTH, SEQUENCE_WIDTH] = [4, 2];
/** ISO 11649: "RF", two check digits and up to 21 more. */
const LONGEST = 25;

/** The account and sequence of a reference: the account's `sequence`-th, counted from 1. */
export interface ReferenceOf {
  accountId: bigint;
  sequence: bigint;
}

/**
 * Makes the creditor reference (ISO 11649) for a transfer of an account: `RF`, two check digits, one character for the
 * length of the account, the account, the sequence; both numbers in Crockford's base 32.
 * @throws RangeError if it would exceed the 25 characters that banks accept, or a number is below 1.
 *
 * @example
 * makeReference({ accountId: 17n, sequence: 1n }); // => "RF924000H01"
 * makeReference({ accountId: 1_048_576n, sequence: 1_024n }); // => "RF31510000100"
 */
export function makeReference({ accountId, sequence }: ReferenceOf): string {
  if (accountId < 1n || sequence < 1n) {
    throw new RangeError(`expected an account and a sequence above 0, got ${accountId} and ${sequence}`);
  }
  const account = base32(accountId).padStart(ACCOUNT_WIDTH, "0");
  const body = `${LETTERS[account.length]}${account}${base32(sequence).padStart(SEQUENCE_WIDTH, "0")}`;
  const reference = `RF${checkDigits(body)}${body}`;
  if (reference.length > LONGEST)
    throw new RangeError(`${reference} is longer than the ${LONGEST} characters of a reference`);
  return reference;
}

/**
 * Whether a text is a valid ISO 11649 reference: up to 25 letters and digits whose remainder by 97 is 1 after the first
 * four are moved to the end. Spaces and case are ignored.
 *
 * @example
 * isReference("RF18 5390 0754 7034"); // => true
 * isReference("rf18539007547034"); // => true
 * isReference("RF6518K5"); // => true
 * isReference("RF45 G72U UR"); // => true
 * isReference("RF18 5390 0754 7043"); // => false
 * isReference("RF18"); // => false
 */
export function isReference(text: string): boolean {
  const reference = text.replaceAll(" ", "").toUpperCase();
  if (!/^RF\d{2}[A-Z0-9]{1,21}$/.test(reference)) return false;
  return mod97(reference.slice(4) + reference.slice(0, 4)) === 1;
}

/**
 * Parses one of our references; null for any other text, even if its check digits are valid.
 *
 * @example
 * readReference("RF92 4000 H01"); // => { accountId: 17n, sequence: 1n }
 * readReference("RF45 G72U UR"); // => null
 */
export function readReference(text: string): ReferenceOf | null {
  const reference = text.replaceAll(" ", "").toUpperCase();
  if (!isReference(reference)) return null;
  const width = LETTERS.indexOf(reference.charAt(4));
  const accountId = number32(reference.slice(5, 5 + width));
  const sequence = number32(reference.slice(5 + width));
  if (accountId === null || sequence === null || accountId < 1n || sequence < 1n) return null;
  // only the canonical form: with another number of zeros it is not one that we issued
  return makesSame({ accountId, sequence }, reference) ? { accountId, sequence } : null;
}

function makesSame(of: ReferenceOf, reference: string): boolean {
  try {
    return makeReference(of) === reference;
  } catch {
    return false; // numbers beyond those that we give
  }
}

/** The remainder by 97 of letters and digits; letters count as 10 to 35 (ISO 7064, MOD 97-10). */
function mod97(text: string): number {
  let rest = 0;
  for (const character of text) {
    const value = Number.parseInt(character, 36);
    rest = (rest * (value < 10 ? 10 : 100) + value) % 97;
  }
  return rest;
}

function checkDigits(body: string): string {
  return String(98 - mod97(`${body}RF00`)).padStart(2, "0");
}

function base32(number: bigint): string {
  let [text, left] = ["", number];
  while (left > 0n) {
    text = `${LETTERS[Number(left % 32n)]}${text}`;
    left /= 32n;
  }
  return text;
}

function number32(text: string): bigint | null {
  let number = 0n;
  for (const letter of text) {
    const value = LETTERS.indexOf(letter);
    if (value < 0) return null;
    number = number * 32n + BigInt(value);
  }
  return text === "" ? null : number;
}
