import { countrySpecs, validateIBAN, ValidationErrorsIBAN } from "ibantools";

/**
 * Returns the problem of an IBAN (ISO 13616) with its country, length, parts or check digits; null if it is valid.
 * Spaces are ignored. Check digits inside national account numbers are not checked.
 *
 * @example
 * ibanProblem("DE89 3704 0044 0532 0130 00"); // => null
 * ibanProblem("DE89 3704 0044 0532 0130 01"); // => "expected check digits that fit, found others; compare it with the statement, since a digit is wrong or two are swapped"
 * ibanProblem("DE89 3704 0044 0532 0130 0"); // => "expected 22 characters in an IBAN of DE, found 21"
 * ibanProblem("DE89 3704 0044 0532 0130 0A"); // => "expected letters and digits in the order of an IBAN of DE"
 * ibanProblem("hello"); // => "expected an IBAN, which begins with the two letters of a country that has IBANs"
 */
export function ibanProblem(text: string): string | null {
  const iban = text.replaceAll(" ", "").toUpperCase();
  const country = iban.slice(0, 2);
  const expected = countrySpecs[country]?.chars;
  const { errorCodes } = validateIBAN(iban);
  const has = (code: ValidationErrorsIBAN) => errorCodes.includes(code);
  if (expected == null || has(ValidationErrorsIBAN.NoIBANCountry)) {
    return "expected an IBAN, which begins with the two letters of a country that has IBANs";
  }
  if (iban.length !== expected) return `expected ${expected} characters in an IBAN of ${country}, found ${iban.length}`;
  if (has(ValidationErrorsIBAN.WrongBBANFormat) || has(ValidationErrorsIBAN.ChecksumNotNumber)) {
    return `expected letters and digits in the order of an IBAN of ${country}`;
  }
  if (!has(ValidationErrorsIBAN.WrongIBANChecksum)) return null;
  return "expected check digits that fit, found others; compare it with the statement, since a digit is wrong or two are swapped";
}

/**
 * Formats a text in groups of four, as people copy and compare it.
 *
 * @example
 * inFours("DE89370400440532013000"); // => "DE89 3704 0044 0532 0130 00"
 */
export function inFours(text: string): string {
  return text.replaceAll(/(.{4})(?=.)/g, "$1 ");
}
