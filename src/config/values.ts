import { z } from "zod";

/** A setting that is on or off; off by default. */
export const flag = z
  .enum(["", "0", "1", "true", "false", "on", "off"])
  .default("")
  .transform((value) => value === "1" || value === "true" || value === "on");

/** A list with commas between; empty by default. */
export const commaSeparated = z
  .string()
  .default("")
  .transform((text) => (text === "" ? [] : text.split(",").map((one) => one.trim())));

/** Whether a text is a URL that begins with http:// or https://. */
export function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && ["http:", "https:"].includes(new URL(text).protocol);
}
