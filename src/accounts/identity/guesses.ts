import { createThread, ThreadLimitError } from "../../thread.ts";
import type { GuessesTask } from "./guesses-thread.ts";

/**
 * Loading the dictionaries takes 360 ms of a core, in which the process could not respond, and 50 MB, of which it keeps
 * most when the thread has ended.
 */
const thread = createThread<GuessesTask, number>(new URL("guesses-thread.ts", import.meta.url), {
  deadlineMs: 10_000,
  idleMs: 120_000,
  maxTasks: 20,
  heapMb: 128,
});

/** The time of an estimate grows with the square of the length: 40 characters take up to 90 ms, 128 up to 550 ms. */
const CHECKED_CHARACTERS = 40;

/**
 * About how many guesses find a password, as a power of ten (zxcvbn's `guessesLog10`); null if that could not be
 * estimated in time. `known` are words that a guesser tries first, such as the person's name.
 */
export async function guessesLog10(password: string, known: readonly string[]): Promise<number | null> {
  try {
    return await thread.run({ password: password.slice(0, CHECKED_CHARACTERS), known });
  } catch (error) {
    if (error instanceof ThreadLimitError) return null;
    throw error;
  }
}
