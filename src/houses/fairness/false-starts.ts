import type { ProvenPoint } from "./chains.ts";

/** False starts of one line remembered for each chain of a table; those of one answer lead to few different ones. */
const NUMBERED_KEPT = 8;
/** Hashes of one table and step that led nowhere: some dozens of answers. */
const HASHES_KEPT = 2_000;

/**
 * What led nowhere, so that a house whose hashes do not lead to the published end costs one long walk and not one a
 * second. Kept for each line of a table (`of`), and forgotten as soon as it is walked to somewhere else (`towards`).
 */
export interface FalseStarts {
  numbered(of: string, towards: string): readonly ProvenPoint[];
  addNumbered(of: string, towards: string, point: ProvenPoint): void;
  hashes(of: string, towards: string): ReadonlySet<string>;
  addHash(of: string, towards: string, hash: string): void;
}

/** A memory without any. */
export function createFalseStarts(): FalseStarts {
  const points = new Map<string, { towards: string; points: ProvenPoint[] }>();
  const hashes = new Map<string, { towards: string; hashes: Set<string> }>();
  return {
    numbered(of, towards) {
      const kept = points.get(of);
      return kept?.towards === towards ? kept.points : [];
    },
    addNumbered(of, towards, { number, hash }) {
      const others = this.numbered(of, towards);
      if (others.some((point) => point.number === number && point.hash === hash)) return;
      points.set(of, { towards, points: [...others, { number, hash }].slice(-NUMBERED_KEPT) });
    },
    hashes(of, towards) {
      const kept = hashes.get(of);
      return kept?.towards === towards ? kept.hashes : new Set();
    },
    addHash(of, towards, hash) {
      const kept = hashes.get(of);
      const set = kept?.towards === towards ? kept.hashes : new Set<string>();
      set.add(hash);
      for (const oldest of set) {
        if (set.size <= HASHES_KEPT) break;
        set.delete(oldest);
      }
      hashes.set(of, { towards, hashes: set });
    },
  };
}
