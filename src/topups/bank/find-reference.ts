import { isReference, readReference } from "./reference.ts";

/** Letters that our references do not contain, with the digits that they are mistaken for. */
const MISREAD: Readonly<Record<string, string>> = { O: "0", I: "1", L: "1", U: "V" };
const LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** Our references have 11 to 25 characters. */
const [SHORTEST, LONGEST] = [11, 25];
/** The search for typos covers references of up to 32^7 accounts and the first few positions where one may begin. */
const [LONGEST_WITH_TYPO, MOST_STARTS] = [15, 4];
/** Texts on statements have 140 characters, sometimes a few times as many. */
const MOST_READ = 600;

/** References that a text may contain. */
export interface FoundReferences {
  /** Exact, apart from spaces, punctuation, case, and letters mistaken for digits. */
  exact: string[];
  /** Valid after one character is changed, removed or added, or two are swapped. The operator has to check them. */
  close: string[];
}

/**
 * Finds our references in the text of a transfer. Only about one in a hundred one-typo variants has valid check digits,
 * so few candidates are left for the database to look up.
 *
 * @example
 * findReferences("payment rf92 4000-h01 thanks").exact; // => ["RF924000H01"]
 * findReferences("RF924OOOHO1").exact; // => ["RF924000H01"]
 * findReferences("RF92400H001").close.includes("RF924000H01"); // => true
 * findReferences("salary november"); // => { exact: [], close: [] }
 */
export function findReferences(text: string): FoundReferences {
  const { letters, starts } = startsIn(text);
  const exact = new Set(findExact(text));
  const close = new Set<string>();
  for (const start of starts.slice(0, MOST_STARTS)) {
    for (let length = SHORTEST - 1; length <= LONGEST_WITH_TYPO && start + length <= letters.length; length += 1) {
      for (const near of oneTypoAway(asWritten(letters.slice(start, start + length)))) {
        if (!exact.has(near) && isReference(near) && readReference(near) !== null) close.add(near);
      }
    }
  }
  return { exact: [...exact], close: [...close] };
}

/** Finds the references that a text contains without a typo, as {@link findReferences} does, in a hundredth of its time. */
export function findExact(text: string): string[] {
  const { letters, starts } = startsIn(text);
  const exact = new Set<string>();
  for (const start of starts) {
    // when more text follows, several lengths may be valid by chance; the database knows which one was issued
    for (let length = SHORTEST; length <= LONGEST && start + length <= letters.length; length += 1) {
      const reference = asWritten(letters.slice(start, start + length));
      if (readReference(reference) !== null) exact.add(reference);
    }
  }
  return [...exact];
}

/** The letters and digits of a text, and where a reference may begin in them. */
function startsIn(text: string): { letters: string; starts: number[] } {
  const letters = text
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]/g, "")
    .slice(0, MOST_READ);
  return { letters, starts: [...letters.matchAll(/RF(?=.{8})/g)].map(({ index }) => index) };
}

/** Replaces letters that our references do not contain by the digits that they are mistaken for. */
function asWritten(text: string): string {
  return text.slice(0, 2) + text.slice(2).replaceAll(/[OILU]/g, (letter) => MISREAD[letter] ?? letter);
}

function* oneTypoAway(text: string): Generator<string> {
  for (let at = 2; at < text.length; at += 1) {
    const [before, after] = [text.slice(0, at), text.slice(at + 1)];
    yield before + after;
    if (at + 1 < text.length) yield before + text.charAt(at + 1) + text.charAt(at) + text.slice(at + 2);
    for (const letter of LETTERS) {
      if (letter !== text.charAt(at)) yield before + letter + after;
      yield before + letter + text.slice(at);
    }
  }
  for (const letter of LETTERS) yield text + letter;
}
