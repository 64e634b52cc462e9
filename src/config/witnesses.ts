import { parseVerifierKey, type VerifierKey, verifierKeyText } from "../signed-note.ts";
import { isHttpUrl } from "./values.ts";

/** A witness as configured. */
export interface Witness {
  key: VerifierKey;
  /** The base URL of its `/add-checkpoint`. */
  url: string;
}

/**
 * Parses `LOG_WITNESSES`: verifier key and address, separated by a space, witnesses separated by commas.
 * @throws Error that names the wrong one
 */
export function parseWitnesses(text: string): Witness[] {
  const parts = text.split(",").map((part) => part.trim());
  return parts.flatMap((part) => {
    if (part === "") return [];
    const [keyText = "", url = "", ...more] = part.split(/\s+/);
    const key = parseVerifierKey(keyText);
    if (!isHttpUrl(url) || more.length > 0 || key.type !== "witness")
      throw new Error(`expected a witness's verifier key, a space and its address, found ${JSON.stringify(part)}`);
    return [{ key, url: url.replace(/\/+$/, "") }];
  });
}

/** A witness in the form in which `LOG_WITNESSES` sets it. */
export function witnessText({ key, url }: Witness): string {
  return `${verifierKeyText(key)} ${url}`;
}
