import { hash, verify } from "@node-rs/argon2";
import { guessesLog10 } from "./guesses.ts";

/** OWASP's password storage cheat sheet: argon2id with 19 MiB, two passes, one lane; 13 ms on a core. */
const ARGON2ID = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
/** Concurrent hashes: each takes 19 MiB and a core, so a flood of forms is bounded. */
const AT_ONCE = 4;
/** Waiting hashes, some two seconds of two cores: in a flood of forms everyone would wait until their deadline. */
const MOST_WAITING = 200;
export const SHORTEST_PASSWORD = 10;
export const LONGEST_PASSWORD = 128;
export const CHANGED_MEANWHILE = "the password was changed meanwhile; sign in again with the new one";

/** Too many passwords wait to be hashed; a retry after a few seconds can succeed. */
export class TooManyPasswordsError extends Error {
  override name = "TooManyPasswordsError";
}

/** @throws TooManyPasswordsError if too many passwords wait to be hashed. */
export function refuseFlood(): void {
  if (waiting.length >= MOST_WAITING) {
    throw new TooManyPasswordsError(`expected at most ${MOST_WAITING} passwords to wait; try again in a few seconds`);
  }
}

/**
 * The hash of a password, normalized by Unicode NFKC, so that equal characters are the same password.
 * @throws TooManyPasswordsError
 */
export async function hashPassword(password: string): Promise<string> {
  refuseFlood();
  return admitted.hash(password);
}

/**
 * Whether a password matches a stored hash.
 * @throws TooManyPasswordsError
 */
export async function isPassword(password: string, kept: string): Promise<boolean> {
  refuseFlood();
  return admitted.verify({ password, hash: kept });
}

/** The same for the library, which is asked after `refuseFlood`: it would hide the error. */
export const admitted = {
  hash: (password: string) => inTurn(() => hash(password.normalize("NFKC"), ARGON2ID)),
  verify: ({ password, hash: kept }: { password: string; hash: string }) =>
    inTurn(() => verify(kept, password.normalize("NFKC"))),
};

/** A thousand million guesses at argon2id are 150 days of a core. A random word of ten letters and digits needs more. */
const FEWEST_GUESSES_LOG10 = 9;

/**
 * Why a password is refused; null if it is accepted. Length counts (NIST SP 800-63B): no kinds of characters are
 * required, but it must not be easy to guess: on a list of leaked passwords, even with digits and signs added, or made of
 * the e-mail address.
 */
export async function passwordProblem(password: string, email: string): Promise<string | null> {
  const plain = password.normalize("NFKC");
  const length = [...plain].length;
  if (length < SHORTEST_PASSWORD) {
    return `expected a password of at least ${SHORTEST_PASSWORD} characters, got ${length}`;
  }
  if (plain.length > LONGEST_PASSWORD) return `expected a password of at most ${LONGEST_PASSWORD} characters`;
  const small = plain.toLowerCase();
  const [name = ""] = email.toLowerCase().split("@");
  const rest = small.replaceAll(name, "");
  if (small === email.toLowerCase() || (name.length >= 3 && small.includes(name) && rest.length < 5)) {
    return "expected a password that is not the e-mail address; choose another";
  }
  const guesses = await guessesLog10(plain, ["roundhouse", ...email.toLowerCase().split(/[^a-z0-9]+/)]);
  if (guesses === null) return "the password could not be checked in time; try again";
  if (guesses < FEWEST_GUESSES_LOG10) {
    return "expected a password that is not easy to guess; choose another, such as four words that have nothing in common";
  }
  return null;
}

let running = 0;
const waiting: (() => void)[] = [];

/** Runs a task when fewer than {@link AT_ONCE} are running in this process, in order of arrival. */
async function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  if (running < AT_ONCE) running += 1;
  else await new Promise<void>((resolve) => waiting.push(resolve)); // a finished task passes its slot on
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}
