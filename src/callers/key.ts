import { hash } from "node:crypto";
import { crc32 } from "node:zlib";

const PREFIX = "rh_live_";
const SECRET_LENGTH = 32;
const CHECK_LENGTH = 6; // 62^6 is more than 2^32
const SHAPE = /^rh_live_[0-9A-Za-z]{38}$/;
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** The largest multiple of 62 in a byte: larger bytes are discarded, because they would make the first letters more frequent. */
const FAIR_BYTES = 248;

/**
 * A new key: `rh_live_`, 32 random base62 characters (190 bits), and 6 that check the 40 before them. The underscore
 * lets a double click select all of it; the check detects a mistyped key without a query.
 * @param randomBytes gives that many random bytes, cryptographically strong
 */
export function mintKey(randomBytes: (count: number) => Uint8Array): string {
  let secret = "";
  while (secret.length < SECRET_LENGTH) {
    for (const byte of randomBytes(SECRET_LENGTH - secret.length)) {
      if (byte < FAIR_BYTES) secret += BASE62.charAt(byte % 62);
    }
  }
  return PREFIX + secret + checkOf(PREFIX + secret);
}

/**
 * Whether a text could be one of our keys, by its form and its check characters alone.
 *
 * @example
 * checkKey("rh_live_0123456789ABCDEFGHIJKLMNOPQRSTUV09MR4J"); // => true
 * checkKey("rh_live_0123456789ABCDEFGHIJKLMNOPQRSTUV09MR4K"); // => false
 */
export function checkKey(text: string): boolean {
  return SHAPE.test(text) && text.slice(-CHECK_LENGTH) === checkOf(text.slice(0, -CHECK_LENGTH));
}

/** What is stored of a key. It holds 190 random bits, so a plain SHA-256 is enough. */
export function hashKey(key: string): Buffer {
  return hash("sha256", key, "buffer");
}

/** The CRC-32 of a text as six base62 characters. */
function checkOf(text: string): string {
  let rest = crc32(text);
  let digits = "";
  while (digits.length < CHECK_LENGTH) {
    digits = BASE62.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}
