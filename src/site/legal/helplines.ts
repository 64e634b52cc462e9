import { readFileSync, statSync } from "node:fs";
import { reasonOf, UsageError } from "../../errors.ts";

const MOST_BYTES = 32_768;

/** A block of the operator's text. */
export type HelplineBlock =
  { kind: "heading"; text: string } | { kind: "paragraph"; text: string } | { kind: "list"; items: string[] };

/**
 * Reads the operator's helplines: plain text. A line that begins with `#` is a heading, lines that begin with `-` are a
 * list, and an empty line ends a paragraph.
 * @throws UsageError if the file cannot be read or is larger than 32 KiB
 */
export function readHelplines(file: string | undefined): HelplineBlock[] {
  if (file === undefined) return [];
  try {
    const { size } = statSync(file);
    if (size > MOST_BYTES) throw new Error(`it has ${size} bytes, expected at most ${MOST_BYTES}`);
    return helplineBlocks(readFileSync(file, "utf8"));
  } catch (error) {
    throw new UsageError(`the file ${file} of HELPLINES_FILE cannot be used: ${reasonOf(error)}`);
  }
}

/**
 * Parses the operator's text into blocks.
 *
 * @example
 * helplineBlocks("# Spain\nCall\n900 533 025.\n- one\n- two"); // => [{ kind: "heading", text: "Spain" }, { kind: "paragraph", text: "Call 900 533 025." }, { kind: "list", items: ["one", "two"] }]
 */
export function helplineBlocks(text: string): HelplineBlock[] {
  const blocks: HelplineBlock[] = [];
  let isNew = true;
  for (const line of text.split(/\r?\n/).map((one) => one.trim())) {
    const last = isNew ? undefined : blocks.at(-1);
    const [, heading] = /^#+\s*(.+)$/.exec(line) ?? [];
    const [, item] = /^[-*]\s+(.+)$/.exec(line) ?? [];
    isNew = line === "" || heading !== undefined;
    if (line === "") continue;
    if (heading !== undefined) blocks.push({ kind: "heading", text: heading });
    else if (item !== undefined) {
      if (last?.kind === "list") last.items.push(item);
      else blocks.push({ kind: "list", items: [item] });
    } else if (last?.kind === "paragraph") last.text += ` ${line}`;
    else blocks.push({ kind: "paragraph", text: line });
  }
  return blocks;
}
