import { styleText } from "node:util";
import Table from "cli-table3";

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

/**
 * Writes one line of results to stdout. Waits until it is written, so that a slow reader slows the command down instead
 * of filling memory.
 * @throws the system's error (EPIPE when the reader has closed the pipe).
 */
export function print(line: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(`${line}\n`, (error) => (error ? reject(error) : resolve()));
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

/** Prints columns without a frame, readable in a terminal and by `awk`. */
export function printTable(head: string[], rows: Cell[][]): Promise<void> {
  const table = new Table({
    head: head.map((title) => paint.bold(title)),
    chars: NO_FRAME,
    style: { head: [], border: [], "padding-left": 0, "padding-right": 2 },
  });
  for (const row of rows) table.push(row.map((cell) => `${cell ?? "-"}`));
  const lines = table.toString().split("\n");
  return print(lines.map((line) => line.trimEnd()).join("\n"));
}

/** The status of a house or table, in its color. */
export function coloredStatus(status: "live" | "stale" | "offline" | "paused"): string {
  const color = { live: paint.green, stale: paint.yellow, offline: paint.red, paused: paint.cyan }[status];
  return color(status);
}

/** Formats a time to the second; programs use --json. */
export function shortTime(time: string | null): string | null {
  return time === null ? null : `${time.slice(0, 19).replace("T", " ")}Z`;
}

const NO_FRAME = Object.fromEntries(
  [
    ["top", "bottom", "left", "right", "mid", "middle"],
    ["top-mid", "top-left", "top-right", "bottom-mid", "bottom-left", "bottom-right"],
    ["left-mid", "mid-mid", "right-mid"],
  ]
    .flat()
    .map((part) => [part, ""]),
);
