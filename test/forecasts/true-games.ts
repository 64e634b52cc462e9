import { ANCHORS, SALT } from "../../src/demo/bustabit-v2.ts";
import { crashHundredths } from "../../src/houses/fairness/bustabit.ts";
import { walkBack } from "../../src/houses/fairness/walk.ts";

/** The true bustabit-v2 games up to and with an anchor, oldest first, in hundredths. */
export function trueGames(count: number, anchor: number): number[] {
  const hash = ANCHORS.find(({ id }) => id === anchor)!.hash;
  const newestFirst = [crashHundredths(hash, SALT)];
  walkBack(hash, count - 1, (earlier) => newestFirst.push(crashHundredths(earlier, SALT)));
  return newestFirst.toReversed();
}

/** Index of a game's color: blue below 2, purple below 10, pink. */
export function colorOf(hundredths: number): number {
  return hundredths < 200 ? 0 : hundredths < 1000 ? 1 : 2;
}
