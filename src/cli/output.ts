import { stripVTControlCharacters, styleText } from "node:util";
import { codeOf } from "../errors.ts";

const style = (format: "bold" | "cyan" | "green" | "red" | "yellow") => (text: string | number | bigint) =>
  styleText(format, `${text}`);

/** Colors if stdout is a terminal, plain text otherwise or with NO_COLOR; FORCE_COLOR overrides both. */
export const paint = {
  bold: style("bold"),
  cyan: style("cyan"),
  green: style("green"),
  red: style("red"),
  yellow: style("yellow"),
};

/** Writes one line of progress or advice to stderr; stdout carries results only. */
export function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** The reader of stdout stopped early, as `| head` does, or closed the terminal: the command ends and has not failed. */
export class ReaderGone extends Error {
  override name = "ReaderGone";
}

/**
 * Writes one line of results to stdout. Waits until it is written, so that a slow reader slows the command down instead
 * of filling memory.
 * @throws {@link ReaderGone}, or the system's error if the line cannot be written.
 */
export function print(line: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(`${line}\n`, (error) => (error ? reject(errorOfStdout(error)) : resolve()));
  });
}

function errorOfStdout(cause: Error): Error {
  const code = codeOf(cause);
  // a closed terminal and a broken disk have the same code
  if (code === "EPIPE" || (code === "EIO" && process.stdout.isTTY))
    return new ReaderGone("stdout is closed", { cause });
  return new Error("the results could not be written to stdout and are incomplete; write them to another place", {
    cause,
  });
}

/** Writes one JSON value on one line. Counts from the database arrive as bigint and are written as numbers. */
export function printJson(value: unknown): Promise<void> {
  return print(JSON.stringify(value, (_, item: unknown) => (typeof item === "bigint" ? Number(item) : item)));
}

/**
 * The fields of a row under their names in JSON. Shallow: what a field contains may be data of others.
 *
 * @example
 * snakeKeys({ roundId: "3", at: null }); // => { round_id: "3", at: null }
 */
export function snakeKeys<Row extends object>(row: Row): Record<string, Row[keyof Row & string]> {
  const names = Object.keys(row) as (keyof Row & string)[];
  const snake = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(names.map((name) => [snake(name), row[name]]));
}

/** One cell of a table; null and undefined are shown as a dash. */
export type Cell = string | number | bigint | boolean | null | undefined;

/** Prints columns without a frame, readable in a terminal and by `awk`: one line per row. */
export function printTable(head: string[], rows: Cell[][]): Promise<void> {
  const lines = [
    head.map((title) => paint.bold(title)),
    ...rows.map((row) => row.map((cell) => `${cell ?? "-"}`.replaceAll(/\s*\n\s*/g, " "))),
  ];
  const widths = head.map((_, column) => lines.reduce((most, line) => Math.max(most, widthOf(line[column] ?? "")), 0));
  const padded = (cell: string, column: number) => cell + " ".repeat((widths[column] ?? 0) - widthOf(cell));
  return print(lines.map((line) => line.map(padded).join("  ").trimEnd()).join("\n"));
}

/** Prints a table of texts that pages show too, in {@link plainText}. */
export function printTexts(head: readonly string[], rows: readonly (readonly string[])[]): Promise<void> {
  return printTable(
    head.map(plainText),
    rows.map((row) => row.map(plainText)),
  );
}

/**
 * A text of the pages with hyphens as minus signs and dashes, as programs read them.
 *
 * @example
 * plainText("−1.5 % – 2 %"); // => "-1.5 % - 2 %"
 */
export function plainText(text: string): string {
  return text.replaceAll(/[–−]/g, "-");
}

/** The columns of a terminal that a text takes: two for a wide letter, none for a color or an accent on a letter. */
function widthOf(text: string): number {
  const letters = stripVTControlCharacters(text).replaceAll(/\p{Mark}/gu, "");
  if (/^[\0-\u02ff]*$/.test(letters)) return letters.length;
  return [...letters].reduce((width, letter) => width + (WIDE.test(letter) ? 2 : 1), 0);
}

const WIDE = /[\p{sc=Han}\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}\p{Emoji_Presentation}\uff01-\uff60]/u;

/** The status of a house or table, in its color. */
export function coloredStatus(status: "live" | "stale" | "offline" | "paused"): string {
  const color = { live: paint.green, stale: paint.yellow, offline: paint.red, paused: paint.cyan }[status];
  return color(status);
}

/** Formats a time to the second; programs use --json. */
export function shortTime(time: string | null): string | null {
  return time === null ? null : `${time.slice(0, 19).replace("T", " ")}Z`;
}
