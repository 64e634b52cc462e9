/**
 * Whether a path is at or below a base path such as `/ops`.
 *
 * @example
 * isBelow("/ops", "/ops/houses"); // => true
 * isBelow("/ops", "/opsx"); // => false
 */
export function isBelow(base: string, path: string): boolean {
  return path === base || path.startsWith(`${base}/`);
}
