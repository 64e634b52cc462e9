let cleanUps: (() => Promise<void>)[] = [];

/**
 * Runs a clean-up after the tests of the file. Modules of tests are loaded once for all files of a worker, so an
 * `afterAll` at their top would count for the first file alone.
 */
export function whenFileEnds(cleanUp: () => Promise<void>): void {
  cleanUps.push(cleanUp);
}

/** Runs what `whenFileEnds` was given, the newest first. */
export async function endFile(): Promise<void> {
  const left = cleanUps;
  cleanUps = [];
  for (const cleanUp of left.toReversed()) await cleanUp();
}
