import { drawInteger } from "./draw.ts";

const ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789";
const LENGTH = 8;
const HALF = 2 ** 20;
const ROUNDS = 4;

/**
 * A text of eight letters and digits for an index below 2^40: it hides the order, no two are equal, and
 * {@link indexOfId} finds the index again without any memory. A Feistel network over two halves of 20 bits.
 */
export function opaqueId(seed: number, game: string, index: number): string {
  let left = Math.floor(index / HALF);
  let right = index % HALF;
  for (let step = 0; step < ROUNDS; step += 1) {
    [left, right] = [right, left ^ drawInteger(HALF, seed, game, "id", step, right)];
  }
  return toText(left * HALF + right);
}

/** The index an id was made for, or null for a text that is not such an id. Any eight letters give some index. */
export function indexOfId(seed: number, game: string, id: string): number | null {
  const value = fromText(id);
  if (value === null) return null;
  let left = Math.floor(value / HALF);
  let right = value % HALF;
  for (let step = ROUNDS - 1; step >= 0; step -= 1) {
    [left, right] = [right ^ drawInteger(HALF, seed, game, "id", step, left), left];
  }
  return left * HALF + right;
}

function toText(value: number): string {
  let text = "";
  for (let rest = value; text.length < LENGTH; rest = Math.floor(rest / ALPHABET.length)) {
    text = (ALPHABET[rest % ALPHABET.length] ?? "") + text;
  }
  return text;
}

function fromText(text: string): number | null {
  if (text.length !== LENGTH) return null;
  let value = 0;
  for (const letter of text) {
    const digit = ALPHABET.indexOf(letter);
    if (digit < 0) return null;
    value = value * ALPHABET.length + digit;
  }
  return value;
}
