import type { KnownRound } from "../rounds/round.ts";

/** What earlier rows of a file brought, as far as later ones may name it again. */
export interface EarlierRounds {
  /** Those of them that rows name, by id, next to what is stored of them. */
  known(items: readonly Named[], stored: ReadonlyMap<string, KnownRound>): ReadonlyMap<string, KnownRound>;
  /** `importedAt` is when they were received. */
  add(rounds: readonly Earlier[], importedAt: string): void;
}

type Earlier = Omit<KnownRound, "receivedAt"> & { roundId: string };

interface Named {
  round: { roundId: string };
}

/**
 * Begins to remember. `mayRepeat` are the ids that several rows have; null if equal ids stand side by side, so that
 * only the rows that were taken last can be named again.
 */
export function rememberEarlier(mayRepeat: ReadonlySet<string> | null): EarlierRounds {
  let earlier = new Map<string, KnownRound>();
  return {
    known(items, stored) {
      if (earlier.size === 0) return stored;
      const known = new Map(stored);
      for (const { round } of items) {
        const same = earlier.get(round.roundId);
        if (same !== undefined) known.set(round.roundId, same);
      }
      return known;
    },
    add(rounds, importedAt) {
      // rows that bring nothing may all repeat the round before them, and the next ones too
      if (mayRepeat === null && rounds.length > 0) earlier = new Map();
      for (const { seq, roundId, hundredths, late, verified, proofHash } of rounds) {
        if (mayRepeat?.has(roundId) === false) continue;
        earlier.set(roundId, { seq, hundredths, late, verified, proofHash, receivedAt: importedAt });
      }
    },
  };
}
