import { isReference, readReference } from "./reference.ts";

/** What stands for a letter that our references do not have. */
const MISREAD: Readonly<Record<string, string>> = { O: "0", I: "1", L: "1", U: "V" };
const LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** A reference of ours has from 11 to 25 characters. */
const [SHORTEST, LONGEST] = [11, 25];
/** Up to 32^7 accounts: of longer ones a typo is not looked for, nor beyond the first few places where one may begin. */
const [LONGEST_WITH_TYPO, MOST_STARTS] = [15, 4];
/** Texts on statements have 140 characters, now and then a few times as many. */
const MOST_READ = 600;

/** References that a text may mean. */
export interface FoundReferences {
  /** Written as we gave them, but for spaces, signs between, small letters, and letters taken for digits. */
  exact: string[];
  /** Others that are right with one character changed, left out, added, or two swapped: somebody has to look. */
  close: string[];
}

/**
 * References of ours in the text that came with a transfer. Check digits tell a right one from one with a typo, and of
 * the texts that are one typo away only about every hundredth is right, so what is left is few and is asked of the
 * database.
 *
 * @example
 * findReferences("payment rf92 4000-h01 thanks").exact; // => ["RF924000H01"]
 * findReferences("RF924OOOHO1").exact; // => ["RF924000H01"]
 * findReferences("RF92400H001").close.includes("RF924000H01"); // => true
 * findReferences("salary november"); // => { exact: [], close: [] }
 */
export function findReferences(text: string): FoundReferences {
  const letters = text
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]/g, "")
    .slice(0, MOST_READ);
  const starts = [...letters.matchAll(/RF(?=.{9})/g)].map(({ index }) => index);
  const exact = new Set<string>();
  const close = new Set<string>();
  for (const start of starts) {
    // where the text goes on after it, several lengths may be right by chance; the database knows which one was given
    for (let length = SHORTEST; length <= LONGEST && start + length <= letters.length; length += 1) {
      const reference = asWritten(letters.slice(start, start + length));
      if (readReference(reference) !== null) exact.add(reference);
    }
  }
  for (const start of starts.slice(0, MOST_STARTS)) {
    for (let length = SHORTEST - 1; length <= LONGEST_WITH_TYPO && start + length <= letters.length; length += 1) {
      for (const near of oneTypoAway(asWritten(letters.slice(start, start + length)))) {
        if (!exact.has(near) && isReference(near) && readReference(near) !== null) close.add(near);
      }
    }
  }
  return { exact: [...exact], close: [...close] };
}

/** Letters that our references do not have become the digits that they are taken for. */
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
