/**
 * A reproducible stream of uniform numbers in [0, 1) with 32 bits each: `sfc32` of PractRand (Doty-Humphrey), three
 * words of state and a counter, seeded by one number; the first fifteen values are discarded.
 */
export function seededRandom(seed: number): () => number {
  let [a, b, c, counter] = [0, seed | 0, (seed ^ 0x5eed5eed) | 0, 1];
  const next = () => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    c |= 0;
    return (sum >>> 0) / 2 ** 32;
  };
  for (let i = 0; i < 15; i++) next();
  return next;
}
