import { describe } from "../../houses/reading/excerpt.ts";
import { parseMultiplier, type ParsedMultiplier } from "../../houses/reading/multiplier.ts";
import type { MultiplierShape } from "../../import/plan.ts";

/** Which mark stands before the decimals; `auto` reads each value by itself. */
export type DecimalMark = "auto" | "." | ",";

/** What may stand between thousands, beside a comma or a point: spaces, also those that do not break, and apostrophes. */
const SPACED = /^\d{1,3}(?:[ \u00a0\u2009\u202f'’]\d{3})+(?=$|[.,]\d|[ ]?[x×])/i;
const POINT_DECIMAL = /^(\d+|\d{1,3}(?:,\d{3})+)(?:\.(\d+))?([ ]?[x×])?$/i;
const COMMA_DECIMAL = /^(\d+|\d{1,3}(?:\.\d{3})+)(?:,(\d+))?([ ]?[x×])?$/i;

/**
 * A reader of a file's multipliers. `scale` is what one unit is worth (0.01 where the file has hundredths), `instant`
 * the forms of an instant crash. With a decimal mark that was named, the other one, a space or an apostrophe may stand
 * between thousands and nowhere else; a value that does not fit is refused. The raw text is kept as it came.
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
      const reason = `expected a multiplier such as ${example}, came ${describe(text)}`;
      return { ok: false, code: "not_a_number", reason };
    }
    const read = parseMultiplier(plain, { scale, instant });
    if (read.ok) return { ...read, rawValue: text };
    return plain === text ? read : { ...read, reason: read.reason.replace(describe(plain), () => describe(text)) };
  };
}

/** The value with a decimal point and nothing between thousands; null where it does not fit what was said. */
function plainOf(text: string, decimal: DecimalMark): string | null {
  if (decimal === "auto") return text;
  const joined = text.replace(SPACED, (thousands) => thousands.replaceAll(/\D/g, ""));
  const [, whole, decimals, suffix = ""] = (decimal === "," ? COMMA_DECIMAL : POINT_DECIMAL).exec(joined) ?? [];
  if (whole === undefined) return null;
  return whole.replaceAll(/[.,]/g, "") + (decimals === undefined ? "" : `.${decimals}`) + suffix;
}

/** What a multiplier tells of its file: a decimal comma, or three digits after a single mark, which may mean two things. */
export function multiplierShape(text: string): MultiplierShape {
  if (/^\d+,(?:\d{1,2}|\d{4,})(?: ?[x×])?$/i.test(text) || /^\d{1,3}(?:\.\d{3})+,\d+(?: ?[x×])?$/i.test(text)) {
    return "comma_decimals";
  }
  if (/^[1-9]\d{0,2},\d{3}(?: ?[x×])?$/i.test(text)) return "comma_and_three";
  return /^[1-9]\d{0,2}\.\d{3}(?: ?[x×])?$/i.test(text) ? "point_and_three" : "clear";
}
