import type { Writable } from "node:stream";
import { finished } from "node:stream/promises";

/**
 * Sends a text to a COPY that has begun, and waits until the server has stored it.
 * @throws what the server refuses
 */
export async function copyText(copy: Writable, text: string): Promise<void> {
  const isStored = finished(copy);
  copy.end(text);
  await isStored;
}
