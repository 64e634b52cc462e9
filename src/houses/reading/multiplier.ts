import type { RefusalCode } from "../contract.ts";
import { describe } from "./excerpt.ts";
import { WireNumber } from "./wire-json.ts";

/** A multiplier as it is stored, or why it is refused. */
export type ParsedMultiplier =
  { ok: true; hundredths: number; rawValue: string } | { ok: false; code: RefusalCode; reason: string };

/** An exact decimal: digits × 10^exponent. */
interface Decimal {
  digits: bigint;
  exponent: number;
}

/** Longer texts are no multiplier: the longest real one has 12 characters. */
const LONGEST_TEXT = 64;
/** No house pays 1,000,000,000x; a value above it is an error in the feed. */
const LARGEST_HUNDREDTHS = 100_000_000_000n;
/** Larger exponents are decided without computing: 1e308 would be a number of 309 digits. */
const LARGEST_EXPONENT = 30;

/** Nearly all multipliers: exact without big integers, in a fifth of the time. */
const USUAL = /^([1-9]\d{0,7})(?:\.(\d)(\d)?\d*)?$/;
const JSON_NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,6}))?$/i;
const COMMA_DECIMALS = /^(\d+),(\d{1,2}|\d{4,})$/;
const COMMA_THOUSANDS = /^([1-9]\d{0,2}(?:,\d{3})+)(?:\.(\d+))?$/;
const POINT_THOUSANDS = /^([1-9]\d{0,2}(?:\.\d{3})+),(\d+)$/;
const POINT_MILLIONS = /^([1-9]\d{0,2}(?:\.\d{3}){2,})$/;

/**
 * Parses a multiplier as a house sends it into integer hundredths, floored, with exact decimal arithmetic: 1.9999 is 199
 * and stays below a color that begins at 2.
 *
 * A text may end in `x`, have a decimal comma, and thousands: three digits after a single comma are thousands
 * (`12,345x` is a whole number; houses that write whole multipliers do so without decimals), one or two are decimals.
 * `scale` is the worth of one unit of the house (0.01 if it sends hundredths). A value equal to one of `instant`, as a
 * number if both are numbers, is an instant crash: 1.00, with the raw value stored. Everything that is not a single number
 * from 1.00 to 1,000,000,000 is refused with its reason.
 *
 * @example
 * parseMultiplier("1,87x", { scale: 1, instant: [] }).hundredths // => 187
 * parseMultiplier(27956, { scale: 0.01, instant: [] }).hundredths // => 27956
 * parseMultiplier("0.00", { scale: 1, instant: ["0"] }).hundredths // => 100
 */
export function parseMultiplier(
  raw: unknown,
  { scale, instant }: { scale: number; instant: readonly (string | number)[] },
): ParsedMultiplier {
  if (raw === null || raw === undefined || raw === "") {
    return refuse("missing_multiplier", `expected a multiplier, found ${describe(raw)}`);
  }
  const text = textOf(raw);
  if (text === null || text.length > LONGEST_TEXT) {
    return refuse("not_a_number", `expected a multiplier such as 1.87 or "1,87x", found ${describe(raw)}`);
  }
  const usual = scale === 1 && instant.length === 0 ? USUAL.exec(text) : null;
  if (usual !== null) {
    const [, whole = "", tenths = "0", hundredth = "0"] = usual;
    return { ok: true, hundredths: Number(whole + tenths + hundredth), rawValue: text };
  }
  const value = readDecimal(text);
  if (instant.some((one) => isSame(text, value, String(one)))) return { ok: true, hundredths: 100, rawValue: text };
  if (value === null) {
    return refuse("not_a_number", `expected a multiplier such as 1.87 or "1,87x", found ${describe(raw)}`);
  }
  const hundredths = floorHundredths(value, readDecimal(String(scale)));
  if (hundredths === "too large" || hundredths > LARGEST_HUNDREDTHS) {
    return refuse("impossible_multiplier", `expected at most 1000000000x, found ${describe(raw)}`);
  }
  if (hundredths < 100n) {
    const advice = value.digits === 0n ? "; if this is an instant crash, list it under feed.instant" : "";
    return refuse(
      "impossible_multiplier",
      `expected 1.00 or more, found ${scaledText(raw, hundredths, scale)}${advice}`,
    );
  }
  return { ok: true, hundredths: Number(hundredths), rawValue: text };
}

/** A value below 1.00 as a multiplier; with its raw text if the house sends another unit. */
function scaledText(raw: unknown, hundredths: bigint, scale: number): string {
  return scale === 1 ? describe(raw) : `${(Number(hundredths) / 100).toFixed(2)} (sent as ${describe(raw)})`;
}

function refuse(code: RefusalCode, reason: string): ParsedMultiplier {
  return { ok: false, code, reason };
}

/** The digits as received. */
function textOf(raw: unknown): string | null {
  if (typeof raw === "string") return raw.replaceAll(/^[ \t\r\n]+|[ \t\r\n]+$/g, "");
  return typeof raw === "number" || raw instanceof WireNumber ? String(raw) : null;
}

function isSame(text: string, value: Decimal | null, instant: string): boolean {
  if (text === instant) return true;
  const other = readDecimal(instant);
  if (value === null || other === null) return false;
  return value.digits === other.digits && (value.digits === 0n || value.exponent === other.exponent);
}

function readDecimal(text: string): Decimal | null {
  const plain = text.replace(/ ?[x×]$/i, "");
  const number = JSON_NUMBER.exec(plain);
  if (number !== null) {
    const [, sign = "", whole = "", decimals = "", exponent = "0"] = number;
    return decimal(`${sign}${whole}`, decimals, Number(exponent));
  }
  const found =
    COMMA_DECIMALS.exec(plain) ??
    COMMA_THOUSANDS.exec(plain) ??
    POINT_THOUSANDS.exec(plain) ??
    POINT_MILLIONS.exec(plain);
  return found === null ? null : decimal((found[1] ?? "").replaceAll(/[.,]/g, ""), found[2] ?? "", 0);
}

/** Trailing zeros are moved to the exponent, so that equal values have equal parts. */
function decimal(whole: string, decimals: string, exponent: number): Decimal {
  let digits = BigInt(whole + decimals);
  let shifted = exponent - decimals.length;
  while (digits !== 0n && digits % 10n === 0n) {
    digits /= 10n;
    shifted += 1;
  }
  return { digits, exponent: shifted };
}

function floorHundredths(value: Decimal, scale: Decimal | null): bigint | "too large" {
  if (scale === null) throw new Error("the scale of a feed is not a decimal number");
  const digits = value.digits * scale.digits;
  const exponent = value.exponent + scale.exponent + 2;
  if (digits <= 0n) return digits < 0n ? -1n : 0n;
  if (exponent > LARGEST_EXPONENT) return "too large";
  if (exponent >= 0) return digits * 10n ** BigInt(exponent);
  // below 10^-128 even the longest digits round to zero
  return exponent < -4 * LARGEST_EXPONENT ? 0n : digits / 10n ** BigInt(-exponent);
}
