import { z } from "zod";

/** A whole number between two bounds, in digits alone: JavaScript reads white space as 0. */
export function wholeNumber(min: number, max: number) {
  const error = `expected a whole number from ${min} to ${max}`;
  return z
    .string()
    .trim()
    .regex(/^\d+$/, { error, abort: true })
    .transform(Number)
    .pipe(z.int({ error }).min(min, { error }).max(max, { error }));
}

/** A text of one line, without white space around it. */
export function oneLine(longest: number) {
  const error = `expected one line of 1 to ${longest} characters`;
  return z
    .string()
    .trim()
    .max(longest, { error })
    .regex(/^[^\p{Cc}]+$/u, { error });
}

/** One of several names. */
export function oneOf<const Names extends readonly string[]>(names: Names) {
  return z.enum(names, { error: `expected one of ${names.join(", ")}` });
}

/** A setting that is on or off; off by default. */
export const flag = z
  .enum(["", "0", "1", "true", "false", "on", "off"], { error: "expected on, true or 1, or off, false or 0" })
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
