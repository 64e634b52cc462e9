/** An entry of the navigation. */
export interface NavEntry {
  label: string;
  href: string;
  /** Its group's heading; empty for none. */
  group: string;
  /** The roles that see it; all if not given. */
  roles?: readonly string[];
}

/**
 * Groups entries by heading, in the order in which the headings first appear.
 *
 * @example
 * grouped([{ label: "A", href: "/a", group: "x" }]); // => [{ label: "x", entries: [{ label: "A", href: "/a", group: "x" }] }]
 */
export function grouped(nav: readonly NavEntry[]): { label: string; entries: NavEntry[] }[] {
  return [...Map.groupBy(nav, ({ group }) => group)].map(([label, entries]) => ({ label, entries }));
}
