/** A problem of one subject. */
interface Finding {
  subject: string;
  text: string;
}

/**
 * Returns the problems that have lasted for `seconds` without a break. A restarted worker finds work from before it
 * stopped; that is no problem while it catches up. `now` is a monotonic clock in milliseconds.
 *
 * @example
 * let ms = 0;
 * const lasting = createLasting(30, () => ms);
 * lasting([{ subject: "alpha", text: "late" }]); // => []
 */
export function createLasting(
  seconds: number,
  now: () => number = () => performance.now(),
): <One extends Finding>(found: readonly One[]) => One[] {
  let since = new Map<string, number>();
  return (found) => {
    const at = now();
    since = new Map(found.map(({ subject }) => [subject, since.get(subject) ?? at]));
    return found.filter(({ subject }) => at - (since.get(subject) ?? at) >= seconds * 1_000);
  };
}
