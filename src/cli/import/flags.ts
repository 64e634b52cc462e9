import { Option } from "commander";
import { readableFile } from "../arguments.ts";
import { fileFormat } from "./format.ts";

const { format, decimal, dates, order } = fileFormat.shape;

/** The options of `import` for a file's format; each has precedence over the mapping file, and is read as its setting is. */
export function formatOptions(): Option[] {
  return [
    new Option(
      "--map <file>",
      "a YAML file with these options: columns, format, delimiter, decimal, scale, …",
    ).argParser(readableFile),
    new Option("--round-id <column>", "the column of ids: its name, or its place counted from 1"),
    new Option("--multiplier <column>", "the column of results"),
    new Option("--occurred-at <column>", "the column of times"),
    new Option("--hash <column>", "the column of fairness hashes"),
    new Option("--row-numbers [first]", "ids for a file without any, counted from the oldest row, such as row-1"),
    new Option("--format <name>", "csv or jsonl; by default detected from the file").choices(format.unwrap().options),
    new Option("--delimiter <mark>", "the delimiter of fields: , or ; or tab; by default detected from the header"),
    new Option("--no-header", "the first line is a row; columns are given by their places"),
    new Option("--decimal <mark>", "the decimal mark; the other one then separates thousands").choices(
      decimal.unwrap().options,
    ),
    new Option("--scale <number>", "what one unit is worth, such as 0.01 for hundredths").argParser((text) =>
      /^\d*\.?\d+$/.test(text) ? Number(text) : text,
    ),
    new Option("--zone <name>", "the time zone of times without one, such as Europe/Berlin; UTC without it"),
    new Option("--dates <order>", "which comes first in dates such as 3/4/2024").choices(dates.unwrap().options),
    new Option("--order <end>", "how the file lists its rounds; auto: detected from ids and times").choices(
      order.unwrap().options,
    ),
  ];
}
