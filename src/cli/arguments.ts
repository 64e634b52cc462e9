import { accessSync, constants, statSync } from "node:fs";
import { InvalidArgumentError } from "commander";
import { DEMO_ACCOUNT, emailProblem } from "../config/mail.ts";
import { codeOf, reasonOf } from "../errors.ts";
import { NAME } from "../houses/settings/name.ts";

const HOUSE = new RegExp(`^${NAME}$`);
const TABLE = new RegExp(`^${NAME}/${NAME}/${NAME}$`);

/** Parses a whole number between two bounds. */
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

/** Parses a comma-separated list. @throws InvalidArgumentError on an empty item. */
export function commaList(text: string): string[] {
  const items = text.split(",").map((item) => item.trim());
  if (items.includes("")) throw new InvalidArgumentError("expected names with a comma between.");
  return items;
}

/** Parses a text that must not be blank, such as a reason. */
export function someText(text: string): string {
  if (text.trim() === "") throw new InvalidArgumentError("expected some words.");
  return text.trim();
}

/** Parses the id of a house. */
export function houseId(text: string): string {
  if (HOUSE.test(text)) return text;
  throw new InvalidArgumentError("expected the id of a house, such as bustabit.");
}

/** Parses the name of a table. */
export function tableName(text: string): string {
  if (TABLE.test(text)) return text;
  throw new InvalidArgumentError("expected house/game/market, such as bustabit/crash/global.");
}

/** Parses an e-mail address that a person can claim, or the demo account's. */
export function emailAddress(text: string): string {
  const problem = text === DEMO_ACCOUNT ? null : emailProblem(text);
  if (problem === null) return text;
  throw new InvalidArgumentError(`${problem}.`);
}

/** Parses the address of a stored account or member of staff, which may have been accepted by looser rules. */
export function knownAddress(text: string): string {
  if (/^\S+@\S+$/.test(text)) return text;
  throw new InvalidArgumentError("expected an e-mail address such as ann@example.com.");
}

/** Parses the path of a readable file. */
export function readableFile(path: string): string {
  try {
    if (statSync(path).isDirectory()) throw new InvalidArgumentError("expected a file, found a folder.");
    accessSync(path, constants.R_OK);
    return path;
  } catch (error) {
    if (error instanceof InvalidArgumentError) throw error;
    throw new InvalidArgumentError(
      codeOf(error) === "ENOENT" ? "there is no such file." : `it cannot be read: ${reasonOf(error)}.`,
    );
  }
}

/** The examples at the end of a command's help; each line can be pasted as it is. */
export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  roundhouse ${line}`).join("\n")}`;
}
