import { createHash } from "node:crypto";
import { networksOf } from "../../limits/address.ts";
import type { Buckets, Size } from "../../limits/buckets.ts";

/**
 * Limits of password attempts. By address and account: enough for a person who mistypes, one a minute for a machine. By
 * address: against lists of accounts. By account: against many machines, and wide enough that they can hardly lock its holder
 * out. The networks of an IPv6 site have four times as much as an address.
 */
const BY_BOTH = { points: 5, seconds: 300 };
const BY_ADDRESS = { points: 30, seconds: 600 };
const BY_ACCOUNT = { points: 60, seconds: 3_600 };

/** Counts failures only, so that repeated locks grow: a minute, six minutes, 72 minutes. */
const FAILURES_BY_BOTH = [
  { points: 10, seconds: 3_600 },
  { points: 20, seconds: 86_400 },
];
const FAILURES_BY_ACCOUNT = [{ points: 200, seconds: 86_400 }];
/**
 * Of a million codes three are right at any moment: thirty guesses a day find one in three centuries. Right codes count
 * too, since each is counted before its check: otherwise concurrent guesses would exceed the limit.
 */
const CODES_BY_ACCOUNT = [
  { points: 10, seconds: 3_600 },
  { points: 30, seconds: 86_400 },
];

/** The longest of these times: an attempt is counted by its address for no longer. */
export const TRIES_KEPT_SECONDS = Math.max(
  ...[BY_BOTH, BY_ADDRESS, BY_ACCOUNT, ...FAILURES_BY_BOTH, ...FAILURES_BY_ACCOUNT, ...CODES_BY_ACCOUNT].map(
    ({ seconds }) => seconds,
  ),
);

/** An attempt to prove an identity. */
export interface Attempt {
  /** What is counted together, such as `console`. */
  what: string;
  /** Whether it is a code of a second factor, which requires the right password before. */
  isCode?: boolean;
  address: string;
  /** Who they claim to be: an e-mail address, an id or a token. */
  who: string;
  /**
   * The device or session by which they are known; null if there is none. It has its own limit, which cannot be used up
   * from elsewhere.
   */
  device?: string | null;
}

/**
 * Takes one attempt. Returns the whole seconds to wait if none is left, else 0. An address without attempts left takes none from
 * the account: otherwise a single machine could lock its holder out. Nor is anything of the account looked up for it, which in
 * memory stores a bucket for each account that it names.
 */
export async function takeTry(buckets: Buckets, attempt: Attempt): Promise<number> {
  const { networks, tries, failures } = limitsOf(attempt);
  for (const limits of [networks, failures]) {
    const states = await Promise.all(limits.map(([name, size]) => buckets.look(name, size)));
    const locks = states.filter(({ isGranted }) => !isGranted);
    if (locks.length > 0) return wholeSeconds(Math.max(...locks.map(({ waitMs }) => waitMs)));
  }
  for (const [name, size] of tries) {
    const { isGranted, waitMs } = await buckets.draw(name, size);
    if (!isGranted) return wholeSeconds(waitMs);
  }
  return 0;
}

/** Counts a failed attempt, which makes the next locks longer. */
export async function noteFailure(buckets: Buckets, attempt: Attempt): Promise<void> {
  for (const [name, size] of limitsOf(attempt).failures) await buckets.draw(name, size);
}

/** The message if no attempts are left. */
export function tooMany(waitSeconds: number): string {
  return `too many tries; wait ${waitSeconds} s and try again`;
}

type Limits = [name: string, size: Size][];

/** The limits of an attempt. `networks` are the ones of `tries` that no account is part of. */
function limitsOf({ what, isCode = false, address, who, device = null }: Attempt): {
  networks: Limits;
  tries: Limits;
  failures: Limits;
} {
  const surface = isCode ? `${what}-code` : what;
  const account = shortHash(who.trim().toLowerCase());
  const named = (name: string, sizes: readonly Size[]): Limits =>
    sizes.map((size) => [`${surface}-try ${name} ${size.points}/${size.seconds}`, size]);
  if (device !== null) {
    const own = `${account} device ${shortHash(device)}`;
    // a new password by mail makes another device known, which must not bring more codes
    const together = isCode ? named(`${account} devices`, CODES_BY_ACCOUNT) : [];
    return { networks: [], tries: [...named(own, [BY_BOTH]), ...together], failures: named(own, FAILURES_BY_BOTH) };
  }
  const inNetworks = (sizes: readonly Size[], suffix = ""): Limits =>
    networksOf(address).flatMap(({ network, factor }) => named(network + suffix, times(factor, sizes)));
  const networks = inNetworks([BY_ADDRESS]);
  return {
    networks,
    tries: [
      ...inNetworks([BY_BOTH], ` ${account}`),
      ...networks,
      ...named(account, isCode ? CODES_BY_ACCOUNT : [BY_ACCOUNT]),
    ],
    failures: [...inNetworks(FAILURES_BY_BOTH, ` ${account}`), ...named(account, isCode ? [] : FAILURES_BY_ACCOUNT)],
  };
}

function times(factor: number, sizes: readonly Size[]): Size[] {
  return sizes.map(({ points, seconds }) => ({ points: factor * points, seconds }));
}

/** A name of limits for an address, an id or a token, which is not to be read in them. */
export function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 22);
}

function wholeSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}
