import { copied } from "../text.ts";
import type { KnownRound } from "../rounds/round.ts";

/** The rounds of a file's earlier rows that later rows may repeat. */
export interface EarlierRounds {
  /** The earlier rounds among `items`, by id, with their stored part. */
  known(items: readonly Named[], stored: ReadonlyMap<string, KnownRound>): ReadonlyMap<string, KnownRound>;
  /** `importedAt` is when they were received. */
  add(rounds: readonly Earlier[], importedAt: string): void;
}

type Earlier = Omit<KnownRound, "receivedAt"> & { roundId: string };

interface Named {
  round: { roundId: string };
}

/**
 * Creates an empty memory. `mayRepeat` are the ids that several rows have; null if equal ids are adjacent, so that only
 * the rows stored last can be repeated.
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
      // rows without a new round may all repeat the round before them, and so may later rows
      if (mayRepeat === null && rounds.length > 0) earlier = new Map();
      for (const { seq, roundId, hundredths, late, verified, proofHash } of mayRepeat === null
        ? rounds.slice(-1)
        : rounds) {
        if (mayRepeat?.has(roundId) === false) continue;
        const known = {
          seq,
          hundredths,
          late,
          verified,
          proofHash: proofHash && copied(proofHash),
          receivedAt: importedAt,
        };
        earlier.set(copied(roundId), known);
      }
    },
  };
}
