/** A reproducible stream of numbers from 0 to below 1, the generator of `generatedRounds`. */
export function generator(seed = 12345): () => number {
  let x = seed;
  return () => {
    x = Number((BigInt(x) * 1664525n + 1013904223n) % 2n ** 32n);
    return x / 2 ** 32;
  };
}

/** A statement of probability and whether it came true. */
export type Statement = { pPpm: number; cameTrue: boolean };

/** Underconfident statements of all p: what is forecast with p happens with 0.15 + 0.7 p. */
export function bentStatements(count: number): Statement[] {
  const next = generator();
  return Array.from({ length: count }, () => {
    const pPpm = 1 + Math.floor(next() * 999_999);
    const u = Math.floor(next() * 1_000_000);
    return { pPpm, cameTrue: u < Math.floor((pPpm * 7 + 1_500_000) / 10) };
  });
}
