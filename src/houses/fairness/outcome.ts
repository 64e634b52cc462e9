import { createHmac, hash as digest } from "node:crypto";
import { assertHash } from "./walk.ts";

/** How a hash becomes a multiplier; the letters are those of `houses.yaml`, see {@link hundredthsOf}. */
export type OutcomeRule = "A" | "B" | "B9" | "S";

/** The parameters of the computation of a multiplier from a hash. */
export interface Outcome {
  rule: OutcomeRule;
  /** For rule A: one round in this many is an instant crash. */
  divisor: number | null;
  /** Salt or client seed, used as text. */
  salt: string;
}

const TWO_TO_52 = 2n ** 52n;
/** 2^32 · 99, below 2^53: exact as a double. */
const HUNDREDTHS_TIMES_2_TO_32 = 99 * 2 ** 32;

/**
 * The multiplier of a hash, in integer hundredths (187 is 1.87); at least 100. An instant crash, which houses show as 0 or
 * 1.00, is 100.
 *
 * With d the HMAC-SHA256, h its first 52 bits and i its first 32:
 * A: d under the hash's text over the salt's; 1.00 if the whole of d is divisible by the divisor, else
 * floor((100·2^52 - h) / (2^52 - h)) / 100. B: d under the salt's text over the 32 hash bytes; floor(99 / (1 - h/2^52)) / 100.
 * B9: as B, with h/2^52 first rounded to nine significant digits. S: d as in A; 2^32 / (i + 1) · 0.99, here floored.
 * All in integers, so that no rounding of a double moves a cent. Results above 2^53, one round in 10^14, are rounded to
 * a double; rule B9 has no finite result for one hash in 2·10^9: Infinity.
 * @throws RangeError if it is not a hash: half a hash would give a plausible wrong number.
 */
export function hundredthsOf(outcome: Outcome, hash: string): number {
  assertHash(hash);
  const { rule, divisor, salt } = outcome;
  switch (rule) {
    case "A":
      return hundredthsOfA(macUnderHash(hash, salt), divisor ?? 0);
    case "B":
      return hundredthsOfB(BigInt(firstBitsUnderSalt(hash, salt)));
    case "B9":
      return hundredthsOfB9(BigInt(firstBitsUnderSalt(hash, salt)));
    case "S":
      return hundredthsOfS(macUnderHash(hash, salt).readUInt32BE());
  }
}

/**
 * Whether this is the multiplier of the hash, as a house with its rule sends it. Rules A and B are sent exactly.
 *
 * B9 was announced in doubles, which are a cent lower if the exact quotient is whole, one round in ten million: both
 * are accepted. S is not truncated, and Stake sends the shortest decimal of the nearest single-precision number (as all
 * of 4,223 recorded values are): each of the two steps is up to a relative 2^-24 away, and together they move one round
 * in 18,000 over a cent. Within that a house could misreport about one round in 3,600, by one cent below 83,886x.
 *
 * @throws RangeError if it is not a hash
 */
export function isOutcome(outcome: Outcome, hash: string, hundredths: number): boolean {
  if (hundredths === hundredthsOf(outcome, hash)) return true;
  const { rule, salt } = outcome;
  if (rule === "B9") return hundredths === doubleOfB9(firstBitsUnderSalt(hash, salt));
  if (rule !== "S" || !Number.isSafeInteger(hundredths)) return false;
  const [low, high] = sentHundredthsOfS(macUnderHash(hash, salt).readUInt32BE());
  return low <= hundredths && hundredths <= high;
}

/** Rule A from the whole HMAC. */
export function hundredthsOfA(mac: Buffer, divisor: number): number {
  if (isDivisible(mac, divisor)) return 100;
  const h = mac.readBigUInt64BE() >> 12n;
  return Number((100n * TWO_TO_52 - h) / (TWO_TO_52 - h));
}

/** Rule B from the first 52 bits of the HMAC. */
export function hundredthsOfB(r: bigint): number {
  return atLeastOne((99n * TWO_TO_52) / (TWO_TO_52 - r));
}

/** Rule B9 from the first 52 bits of the HMAC; a half is rounded up, as `Number.prototype.toPrecision` does. */
export function hundredthsOfB9(r: bigint): number {
  if (r === 0n) return 100;
  // digits · 10^-places is r / 2^52 to nine significant digits
  let scale = 10n ** 9n;
  while (r * scale < 10n ** 8n * TWO_TO_52) scale *= 10n;
  const digits = (2n * r * scale + TWO_TO_52) / (2n * TWO_TO_52);
  if (digits >= scale) return Infinity;
  return atLeastOne((99n * scale) / (scale - digits));
}

/** Rule B9 in doubles, as it was announced. */
function doubleOfB9(r: number): number {
  return Math.max(100, Math.floor(99 / (1 - Number((r / 2 ** 52).toPrecision(9)))));
}

/** Rule S from the first 32 bits of the HMAC. A quotient of integers this small never rounds up to the next one. */
export function hundredthsOfS(i: number): number {
  return Math.max(100, Math.floor(HUNDREDTHS_TIMES_2_TO_32 / (i + 1)));
}

/** The possible results of rule S after the house rounded it to single precision and printed a short decimal of that. */
function sentHundredthsOfS(i: number): [low: number, high: number] {
  const exact = BigInt(HUNDREDTHS_TIMES_2_TO_32);
  const unit = 2n ** 23n;
  const below = BigInt(i + 1) * unit;
  return [atLeastOne((exact * (unit - 1n)) / below), atLeastOne((exact * (unit + 1n)) / below)];
}

function atLeastOne(hundredths: bigint): number {
  return hundredths < 100n ? 100 : Number(hundredths);
}

/** Digit by digit: a remainder below 2^20 times 2^32 is exact in a double. */
function isDivisible(mac: Buffer, divisor: number): boolean {
  if (!Number.isInteger(divisor) || divisor < 2 || divisor > 2 ** 20) {
    throw new RangeError(`expected a divisor from 2 to 1048576, got ${divisor}`);
  }
  let rest = 0;
  for (let at = 0; at < mac.length; at += 4) rest = (rest * 2 ** 32 + mac.readUInt32BE(at)) % divisor;
  return rest === 0;
}

function macUnderHash(hash: string, salt: string): Buffer {
  return createHmac("sha256", hash).update(salt).digest();
}

/** The padded key of one salt, with which both digests of an HMAC begin (RFC 2104), and a buffer for the rest. */
interface Keyed {
  salt: string;
  inner: Buffer;
  outer: Buffer;
}

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
/** Rounds are proven table by table, nearly always with the salt of the round before. */
let keyed: Keyed | null = null;

/**
 * The first 52 bits of the HMAC under the salt's text over the 32 bytes of a hash. Two one-shot digests with a cached key
 * take a third of the time of Node's HMAC, which is most of the cost of proving a round; as texts of bytes, a fifth less
 * than in digits.
 */
function firstBitsUnderSalt(hash: string, salt: string): number {
  if (keyed?.salt !== salt) keyed = keyedBy(salt);
  const { inner, outer } = keyed;
  inner.write(hash, BLOCK_BYTES, "hex");
  outer.write(digest("sha256", inner, "binary"), BLOCK_BYTES, "binary");
  const mac = digest("sha256", outer, "binary");
  let bits = mac.charCodeAt(6) >> 4;
  for (let at = 0; at < 6; at += 1) bits += mac.charCodeAt(at) * 2 ** (44 - 8 * at);
  return bits;
}

function keyedBy(salt: string): Keyed {
  const text = Buffer.from(salt);
  const key = text.length > BLOCK_BYTES ? digest("sha256", text, "buffer") : text;
  const inner = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES, 0x36);
  const outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES, 0x5c);
  for (const [at, byte] of key.entries()) {
    inner[at] = byte ^ 0x36;
    outer[at] = byte ^ 0x5c;
  }
  return { salt, inner, outer };
}
