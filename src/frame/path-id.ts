/** Parses an id of a path or a form; null if it is not one. */
export function idOf(text: string | undefined): bigint | null {
  return text !== undefined && /^\d{1,18}$/.test(text) ? BigInt(text) : null;
}
