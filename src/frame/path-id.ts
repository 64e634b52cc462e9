import { PageError } from "./errors.ts";

/** Parses an id of a path or a form; null if it is not one. */
export function idOf(text: string | undefined): bigint | null {
  return text !== undefined && /^\d{1,18}$/.test(text) ? BigInt(text) : null;
}

/** Parses the id in a path. @throws PageError 404 if it is not one */
export function requireId(text: string | undefined): bigint {
  const id = idOf(text);
  if (id === null) throw new PageError(404, "what this page was about is not here, or no longer");
  return id;
}
