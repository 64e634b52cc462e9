import { html, type Html } from "./html.ts";

/** What is between backticks is code. */
export function prose(text: string): Html[] {
  return text.split("`").map((part, at) => (at % 2 === 0 ? html`${part}` : html`<code>${part}</code>`));
}
