/** Pieces that parsers tend to fail on. */
export const PIECES = [
  ..."\0 \r \n \r\n \u2028 \ufeff \ud800 ' \" \\ / < > <!-- ]]> & &#x0; , ; : = * W/ { } [ ] ( ) - + . 0 -0 1e999 -1e-999 NaN null true".split(
    " ",
  ),
  "9".repeat(40),
  "9007199254740993",
  "1.10",
  '{"a":',
  "[[[[[[[[",
  '"__proto__"',
  "&lt;",
  "<![CDATA[",
  "<script",
  "%00",
  "ﷺ",
  "😀",
];
const LONGEST = 64_000;

/** Numbers in [0, 1) that depend on the seed alone (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One of the texts, changed a few times at random: cut, joined with another, repeated, or with something put in. */
export function mutate(texts: readonly string[], random: () => number): string {
  const below = (limit: number) => Math.floor(random() * limit);
  const pick = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item;
  let text = pick(texts);
  for (let left = 1 + below(6); left > 0; left -= 1) {
    const [from, to] = [below(text.length + 1), below(text.length + 1)].toSorted((a, b) => a - b) as [number, number];
    const part = text.slice(from, to);
    const changes = [
      () => text.slice(0, from) + text.slice(to),
      () => text.slice(0, from) + pick(PIECES) + text.slice(from),
      () => text.slice(0, from) + pick(PIECES) + text.slice(to),
      () => text.slice(0, from) + part.repeat(2 + below(200)) + text.slice(to),
      () => text.slice(0, from) + pick(PIECES).repeat(1 + below(5_000)) + text.slice(to),
      () => text.slice(0, from) + pick(texts).slice(below(50)),
      () => text.replaceAll(/\d+/g, (digits) => (random() < 0.3 ? pick(["0", "-1", "1e400", "9".repeat(25)]) : digits)),
    ];
    text = pick(changes)().slice(0, LONGEST);
  }
  return text;
}
