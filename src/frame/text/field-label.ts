/** Labels of fields whose name, with a capital, is no label. */
const LABELS: Readonly<Record<string, string>> = {
  of: "House or table",
  until: "End (UTC)",
  price: "Price, USD",
  day: "Calls per UTC day",
  month: "Calls per UTC month",
  ceiling: "Ceiling per UTC day",
  rps: "Calls per second",
  email: "E-mail",
  bank_ref: "Bank reference",
  remittance: "Text",
  take: "Result",
  q: "Search",
  next: "New password",
  again: "Repeat the new password",
  current: "Current password",
};
/** Fields that forms carry and people do not fill in. */
const HIDDEN = new Set(
  "back endpoint expected id ids key match offer parent problem return revision run seen version was".split(" "),
);

/**
 * Labels a field of a form that is shown again; null if the field was hidden.
 *
 * @example
 * fieldLabel("rps"); // => "Calls per second"
 * fieldLabel("on_sale"); // => "On sale"
 * fieldLabel("revision"); // => null
 */
export function fieldLabel(name: string): string | null {
  if (HIDDEN.has(name)) return null;
  const words = name.replaceAll("_", " ");
  return LABELS[name] ?? words.charAt(0).toUpperCase() + words.slice(1);
}
