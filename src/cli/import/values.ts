import { describe } from "../../houses/reading/excerpt.ts";
import { parseMultiplier, type ParsedMultiplier } from "../../houses/reading/multiplier.ts";
import type { MultiplierShape } from "../../import/plan.ts";

/** The decimal mark; `auto` decides for each value. */
export type DecimalMark = "auto" | "." | ",";

/** Thousands separators besides comma and point: spaces, also no-break ones, and apostrophes. */
const SPACED = /^\d{1,3}(?:[ \u00a0\u2009\u202f'’]\d{3})+(?=$|[.,]\d|[ ]?[x×])/i;
const POINT_DECIMAL = /^(\d+|\d{1,3}(?:,\d{3})+)(?:\.(\d+))?([ ]?[x×])?$/i;
const COMMA_DECIMAL = /^(\d+|\d{1,3}(?:\.\d{3})+)(?:,(\d+))?([ ]?[x×])?$/i;

/**
 * A parser of a file's multipliers. `scale` is the worth of one unit (0.01 if the file has hundredths), `instant` the
 * spellings of an instant crash. With a given decimal mark, the other one, a space or an apostrophe may only separate
 * thousands; a value that does not fit is refused. The raw text is kept.
 */
export function multipliersOf(options: {
  decimal: DecimalMark;
  scale: number;
  instant: readonly (string | number)[];
}): (text: string | null) => ParsedMultiplier {
  const { decimal, scale, instant } = options;
  return (text) => {
    const asHouses = () => parseMultiplier(text, { scale, instant });
    if (text === null || instant.includes(text)) return asHouses();
    const plain = plainOf(text, decimal);
    if (plain === null) {
      const example = decimal === "," ? "1.234,56 or 1,87x" : "1,234.56 or 1.87x";
      const reason = `expected a multiplier such as ${example}, found ${describe(text)}`;
      return { ok: false, code: "not_a_number", reason };
    }
    const read = parseMultiplier(plain, { scale, instant });
    if (read.ok) return { ...read, rawValue: text };
    return plain === text ? read : { ...read, reason: read.reason.replace(describe(plain), () => describe(text)) };
  };
}

/** The value with a decimal point and no thousands separators; null if it does not fit the given marks. */
function plainOf(text: string, decimal: DecimalMark): string | null {
  if (decimal === "auto") return text;
  const joined = text.replace(SPACED, (thousands) => thousands.replaceAll(/\D/g, ""));
  const [, whole, decimals, suffix = ""] = (decimal === "," ? COMMA_DECIMAL : POINT_DECIMAL).exec(joined) ?? [];
  if (whole === undefined) return null;
  return whole.replaceAll(/[.,]/g, "") + (decimals === undefined ? "" : `.${decimals}`) + suffix;
}

/** The evidence in a multiplier on its file: a decimal comma, or three digits after a single mark, which is ambiguous. */
export function multiplierShape(text: string): MultiplierShape {
  if (/^\d+,(?:\d{1,2}|\d{4,})(?: ?[x×])?$/i.test(text) || /^\d{1,3}(?:\.\d{3})+,\d+(?: ?[x×])?$/i.test(text)) {
    return "comma_decimals";
  }
  if (/^[1-9]\d{0,2},\d{3}(?: ?[x×])?$/i.test(text)) return "comma_and_three";
  return /^[1-9]\d{0,2}\.\d{3}(?: ?[x×])?$/i.test(text) ? "point_and_three" : "clear";
}
