import { hash as digest } from "node:crypto";

/**
 * A number in [0, 1) that depends on nothing but the seed and what it is drawn for, so that a restart, or a second
 * server, draws the same: the first 52 bits of a SHA-256.
 */
export function draw(seed: number, ...purpose: readonly (string | number)[]): number {
  return Number.parseInt(digest("sha256", [seed, ...purpose].join("/")).slice(0, 13), 16) / 2 ** 52;
}

/** An integer from 0 to `count` - 1, drawn as {@link draw} does. */
export function drawInteger(count: number, seed: number, ...purpose: readonly (string | number)[]): number {
  return Math.floor(draw(seed, ...purpose) * count);
}
