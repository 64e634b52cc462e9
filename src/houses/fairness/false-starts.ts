import type { ProvenPoint } from "./chains.ts";

/** False starts remembered per chain of a table; those of one response lead to few different hashes. */
const NUMBERED_KEPT = 8;
/** Remembered hashes of one table and step: those of some dozens of responses. */
const HASHES_KEPT = 2_000;

/**
 * Hashes that led nowhere, so that a house whose hashes do not lead to the published end costs one long walk and not one per
 * second. Stored per line of a table (`of`), and dropped when a walk has another target (`towards`).
 */
export interface FalseStarts {
  numbered(of: string, towards: string): readonly ProvenPoint[];
  addNumbered(of: string, towards: string, point: ProvenPoint): void;
  hashes(of: string, towards: string): ReadonlySet<string>;
  addHash(of: string, towards: string, hash: string): void;
}

/** Remembers none. */
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
