/**
 * Passwords that are tried first. Lists of leaked ones are long, but those of ten characters and more are nearly all
 * made in one of four ways: a well-known word with digits and signs around it, such words one after another, a walk
 * over the keyboard, or a short piece again and again. The ways are looked for, so that `Passw0rd!2027` is known before
 * any list has it.
 */

/** What somebody takes who has to take something. */
const WORDS = `
  access account admin administrator agent amanda america andrea andrew angel animal anthony apple ashley asshole august
  autumn baby bailey bandit banana barcelona baseball basketball batman beautiful berlin biteme blink blue bond bonjour
  boomer brandon brazil buster butterfly california cameron captain change changeit changeme charlie cheese chelsea chicago
  chicken chocolate chris christian coffee company compaq computer cookie corvette cowboys crash crystal dallas daniel
  database david default demo destiny diamond dolphin donald dragon eagle elephant eminem england enter family fender
  ferrari fishing flower football forever france freedom friend friends fuck fuckyou george ginger girl google green guest
  guitar gunner hammer hannah happy harley heather hello hockey home house hunter iceman iloveu iloveyou internet jackson
  jasmine jennifer jessica jesus jordan joshua justin killer king knight lakers lauren legend letmein liverpool login
  london lover loveme loveyou love maggie magic manager manchester marina marine marlboro martin master matrix matthew
  maverick melissa mercedes merlin metallica michael michelle mickey midnight minecraft mine monday money monkey monster
  morgan mother mustang nascar natasha new newyork nicole ninja november october oliver operator orange ops panther
  paris pass passport passw password patrick peaches peanut pepper phoenix please pokemon police porsche princess private
  purple qazwsx rabbit rachel rainbow ranger rangers raiders random redsox robert rocket root roundhouse runner russia
  samantha samsung scooter scorpion secret security september server service sexy shadow silver slayer smokey snoopy soccer
  sophie spain spider spiderman spring star starwars stephanie steelers sugar summer sunday sunflower sunshine super
  superman support sweet system taylor teacher temp tennis tequila test testing thomas thunder thx tiger tigger
  tinkerbell trinity trustno trustme turtle unknown user vampire victoria vietnam viking warrior welcome whatever white
  william windows winter wizard wolf work world yankees yellow you yourname zxcvbn super123
`
  .trim()
  .split(/\s+/);
const KNOWN = new Set(WORDS);
const LONGEST_WORD = Math.max(...WORDS.map((word) => word.length));

/** Rows and columns of keyboards, the alphabet and the digits: what fingers walk along. */
const WALKS = [
  "qwertyuiop[]", "asdfghjkl;'", "zxcvbnm,./", "qwertzuiop", "azertyuiop", "1234567890", "01234567890", "abcdefghijklmnopqrstuvwxyz",
  "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.0p;/", "qazwsxedcrfvtgbyhnujmikolp", "q1w2e3r4t5y6u7i8o9p0", "1q2w3e4r5t6y7u8i9o0p",
  "a1b2c3d4e5f6g7h8i9j0", "qweasdzxc", "zaq1xsw2cde3vfr4bgt5nhy6", "147258369", "159753", "741852963", "!@#$%^&*()",
].flatMap((walk) => [walk, [...walk].toReversed().join("")]); // prettier-ignore

/** Signs that stand for letters. */
const LETTERS: Record<string, string> = {
  "0": "o",
  "1": "i",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
  "@": "a",
  $: "s",
  "!": "i",
};

/** Two words are common; three begin to be a phrase. */
const MOST_WORDS = 2;
/** At most so many characters of a common password are not part of a common piece: a year, a sign. */
const LOOSE_CHARACTERS = 6;

/**
 * Whether a password of ten characters or more is one that everybody tries.
 *
 * @example
 * isCommon("password123"); // => true
 * isCommon("P@ssw0rd2027!"); // => true
 * isCommon("iloveyou4ever"); // => false
 * isCommon("1q2w3e4r5t"); // => true
 * isCommon("abcabcabcabc"); // => true
 * isCommon("letmeinletmein"); // => true
 * isCommon("five rare green kettles"); // => false
 */
export function isCommon(password: string): boolean {
  const small = password.toLowerCase();
  if (isRepeated(small) || looseOf(small, walkAt) <= 3) return true;
  const core = small.replaceAll(/^[^a-z]+|[^a-z]+$/g, "");
  const around = small.replace(core, "");
  const spelled = core.replaceAll(/[013457@$!]/g, (sign) => LETTERS[sign] ?? sign);
  return [core, spelled].some((text) => {
    const letters = text.match(/[a-z]+/g) ?? [];
    const signs = around + text.replaceAll(/[a-z]+/g, "");
    const isMadeOfWords = letters.every((group) => looseOf(group, pieceAt) === 0);
    return isMadeOfWords && piecesOf(letters.join("")) <= MOST_WORDS && looseOf(signs, walkAt) <= LOOSE_CHARACTERS;
  });
}

/** A piece of at most four characters (or half of the text) again and again. */
function isRepeated(text: string): boolean {
  return [1, 2, 3, 4, text.length / 2].some(
    (length) => Number.isInteger(length) && text.startsWith(text.slice(length)) && text.length >= 2 * length,
  ) && new Set(text).size <= 8; // prettier-ignore
}

/** Characters outside of the longest pieces, taken from left to right. */
function looseOf(text: string, lengthAt: (text: string, from: number) => number): number {
  let loose = 0;
  for (let at = 0; at < text.length;) {
    const length = lengthAt(text, at);
    loose += length === 0 ? 1 : 0;
    at += Math.max(1, length);
  }
  return loose;
}

/** How many pieces make up the letters, one after another. */
function piecesOf(letters: string): number {
  let pieces = 0;
  for (let at = 0; at < letters.length; pieces += 1) at += Math.max(1, pieceAt(letters, at));
  return pieces;
}

/** How long the longest common piece at a place is. */
function pieceAt(text: string, from: number): number {
  return Math.max(wordAt(text, from), walkAt(text, from));
}

/** How long the longest common word at a place is. */
function wordAt(text: string, from: number): number {
  for (let length = Math.min(LONGEST_WORD, text.length - from); length >= 3; length -= 1) {
    if (KNOWN.has(text.slice(from, from + length))) return length;
  }
  return 0;
}

/** How long the longest walk at a place is; four characters at least. */
function walkAt(text: string, from: number): number {
  let length = 4;
  const isWalk = () => WALKS.some((walk) => walk.includes(text.slice(from, from + length)));
  if (from + length > text.length || !isWalk()) return 0;
  while (from + length < text.length) {
    length += 1;
    if (!isWalk()) return length - 1;
  }
  return length;
}
