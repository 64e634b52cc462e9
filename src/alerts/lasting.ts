/** Something that is wrong with one subject now. */
interface Finding {
  subject: string;
  text: string;
}

/**
 * Remembers since when each subject has been wrong without a break, and returns those that have been for `seconds`: what
 * a restarted worker finds undone from before it stopped is no problem while it is being caught up. `now` is a
 * monotonic clock in milliseconds.
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
