import { InvalidArgumentError } from "commander";

/** Reads an option that is a whole number between two bounds. */
export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(
      max === Number.MAX_SAFE_INTEGER
        ? `expected a whole number from ${min}.`
        : `expected a whole number from ${min} to ${max}.`,
    );
  };
}

/** Reads a comma list; empty items are a mistake. */
export function commaList(text: string): string[] {
  const items = text.split(",").map((item) => item.trim());
  if (items.includes("")) throw new InvalidArgumentError("expected names with a comma between.");
  return items;
}

/** Reads a text that says something, such as a reason. */
export function someText(text: string): string {
  if (text.trim() === "") throw new InvalidArgumentError("expected some words.");
  return text.trim();
}

/** The last part of a command's help: lines that work when they are pasted. */
export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  roundhouse ${line}`).join("\n")}`;
}
