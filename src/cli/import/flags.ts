import { InvalidArgumentError, Option } from "commander";
import { readableFile, someText } from "../arguments.ts";
import { zoneName } from "./zone.ts";

/** The options of `import` for a file's format; each has precedence over the mapping file. */
export function formatOptions(): Option[] {
  return [
    new Option(
      "--map <file>",
      "a YAML file with these options: columns, format, delimiter, decimal, scale, …",
    ).argParser(readableFile),
    new Option("--round-id <column>", "the column of ids: its name, or its place counted from 1").argParser(someText),
    new Option("--multiplier <column>", "the column of results").argParser(someText),
    new Option("--occurred-at <column>", "the column of times").argParser(someText),
    new Option("--hash <column>", "the column of fairness hashes").argParser(someText),
    new Option("--row-numbers [first]", "ids for a file without any, counted from the oldest row, such as row-1"),
    new Option("--format <name>", "csv or jsonl; by default detected from the file").choices(["auto", "csv", "jsonl"]),
    new Option(
      "--delimiter <mark>",
      "the delimiter of fields: , or ; or tab; by default detected from the header",
    ).argParser(delimiter),
    new Option("--no-header", "the first line is a row; columns are given by their places"),
    new Option("--decimal <mark>", "the decimal mark; the other one then separates thousands").choices([
      "auto",
      ".",
      ",",
    ]),
    new Option("--scale <number>", "what one unit is worth, such as 0.01 for hundredths").argParser(scale),
    new Option("--zone <name>", "the time zone of times without one, such as Europe/Berlin; UTC without it").argParser(
      zoneName,
    ),
    new Option("--dates <order>", "which comes first in dates such as 3/4/2024").choices([
      "auto",
      "month_first",
      "day_first",
    ]),
    new Option("--order <end>", "how the file lists its rounds; auto: detected from ids and times").choices([
      "auto",
      "newest_first",
      "newest_last",
    ]),
  ];
}

function delimiter(text: string): string {
  const found = { auto: "auto", ",": ",", ";": ";", tab: "\t", "\\t": "\t", "\t": "\t" }[text];
  if (found !== undefined) return found;
  throw new InvalidArgumentError('expected ",", ";" or tab.');
}

function scale(text: string): number {
  const value = Number(text);
  if (/^\d*\.?\d+$/.test(text) && value > 0 && value <= 1) return value;
  throw new InvalidArgumentError("expected a number above 0, at most 1, such as 0.01.");
}
