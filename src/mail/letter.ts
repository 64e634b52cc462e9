/** A mail without its recipient. */
export interface Letter {
  kind: string;
  /** One line without control characters, at most 200 characters. */
  subject: string;
  /** Plain text, wrapped at 72 columns, ending with the notice. */
  body: string;
  /** A link that grants access: stored encrypted, while the body has {@link LINK} in its place. */
  link?: string;
}

/** What every mail ends with, on two lines. */
const NOTICE = "Information only. Rounds come from the house's random generator;\nno outcome is guaranteed. 18+.";

/** What fits next to quote marks on a terminal of 80 columns (RFC 3676, §4.2: 66 to 78). */
const COLUMNS = 72;
const LONGEST_SUBJECT = 200;

/**
 * Writes a mail: its paragraphs with an empty line between, and the notice that every mail ends with. A line break
 * within a paragraph stays; a word longer than a line, such as a link, is never cut.
 *
 * Whatever comes from people may be given as it is: no text gets out of the subject into another header, and none
 * carries control characters.
 *
 * @example
 * letter("hello", "Good\r\nmorning", ["One.", "Two."]).subject; // => "Good morning"
 */
export function letter(kind: string, subject: string, paragraphs: readonly string[]): Letter {
  const texts = [...paragraphs, NOTICE].map((paragraph) =>
    paragraph
      .split(/\r\n|\r|\n/)
      .map(wrap)
      .join("\n"),
  );
  return { kind, subject: oneLine(subject, LONGEST_SUBJECT) || "(no subject)", body: `${texts.join("\n\n")}\n` };
}

/** A text as one line of so many characters at most: line breaks and other control characters become single spaces. */
export function oneLine(text: string, most: number): string {
  const letters = [...printable(text).trim()];
  return letters.length <= most ? letters.join("") : `${letters.slice(0, most - 1).join("")}…`;
}

function wrap(text: string): string {
  const lines: string[] = [];
  for (const word of printable(text).trim().split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && [...last].length + 1 + [...word].length <= COLUMNS) lines.push(`${lines.pop()} ${word}`);
    else lines.push(word);
  }
  return lines.join("\n");
}

/** Without characters that steer a terminal or a mail server, or hide what is written (bidirectional overrides). */
function printable(text: string): string {
  return text.toWellFormed().replaceAll(/[\s\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu, " ");
}
