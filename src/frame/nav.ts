/** A place in the navigation. */
export interface NavEntry {
  label: string;
  href: string;
  /** The heading that it stands under; empty for none. */
  group: string;
}

/**
 * Entries below their headings, in the order in which the headings first appear.
 *
 * @example
 * grouped([{ label: "A", href: "/a", group: "x" }]); // => [{ label: "x", entries: [{ label: "A", href: "/a", group: "x" }] }]
 */
export function grouped(nav: readonly NavEntry[]): { label: string; entries: NavEntry[] }[] {
  return [...Map.groupBy(nav, ({ group }) => group)].map(([label, entries]) => ({ label, entries }));
}
