/**
 * The remainder by 97 of a text of digits and letters, letters counting as 10 to 35 (ISO 7064, MOD 97-10).
 * @throws RangeError for any other character.
 *
 * @example
 * mod97("98"); // => 1
 * mod97("A1"); // => 4
 */
export function mod97(text: string): number {
  let rest = 0;
  for (const character of text) {
    const value = Number.parseInt(character, 36);
    if (Number.isNaN(value)) throw new RangeError(`expected digits and letters, got ${JSON.stringify(character)}`);
    rest = (rest * (value < 10 ? 10 : 100) + value) % 97;
  }
  return rest;
}

/**
 * What is wrong with an IBAN (ISO 13616: country, two check digits, up to 30 more; the whole rotated by four is 1 by
 * mod 97); null where nothing is. Spaces do not count.
 *
 * @example
 * ibanProblem("DE89 3704 0044 0532 0130 00"); // => null
 * ibanProblem("DE89 3704 0044 0532 0130 01"); // => "its check digits do not fit; a digit is wrong or two are swapped"
 * ibanProblem("hello"); // => "expected a country of two letters, two digits and 11 to 30 letters or digits"
 */
export function ibanProblem(text: string): string | null {
  const iban = text.replaceAll(" ", "").toUpperCase();
  if (!/^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/.test(iban)) {
    return "expected a country of two letters, two digits and 11 to 30 letters or digits";
  }
  const isRight = mod97(iban.slice(4) + iban.slice(0, 4)) === 1;
  return isRight ? null : "its check digits do not fit; a digit is wrong or two are swapped";
}

/**
 * A text in groups of four, as people copy and compare it.
 *
 * @example
 * inFours("DE89370400440532013000"); // => "DE89 3704 0044 0532 0130 00"
 */
export function inFours(text: string): string {
  return text.replaceAll(/(.{4})(?=.)/g, "$1 ");
}
