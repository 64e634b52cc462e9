/** A text that is HTML already. */
export interface Html {
  readonly html: string;
}

type Value = string | number | Html | readonly Html[];

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** HTML of a template: whatever is put into it is escaped, unless it was made here itself. */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  return { html: parts.map((part, at) => part + textOf(values[at] ?? "")).join("") };
}

function textOf(value: Value): string {
  if (typeof value === "object") return "html" in value ? value.html : value.map((one) => one.html).join("");
  return String(value).replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? character);
}
