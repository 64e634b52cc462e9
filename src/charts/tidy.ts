const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text: string) => text.replaceAll(/[&<>"]/g, (character) => ESCAPES[character] ?? character);

/**
 * Makes a vega drawing embeddable: one image with a name and a description for screen readers instead of hundreds of
 * marks, without what a strict content policy refuses.
 *
 * @example
 * const plot = { title: "a <b>", description: "c" };
 * tidySvg('<svg class="m" width="9"><g style="cursor:grab"/></svg>', plot); // => '<svg role="img" aria-label="a &lt;b&gt;" width="9"><title>a &lt;b&gt;</title><desc>c</desc><g/></svg>'
 */
export function tidySvg(svg: string, { title, description }: { title: string; description: string }): string {
  const bare = svg.replaceAll(/ (?:role|aria-[a-z]+|style|class)="[^"]*"/g, "");
  return bare.replace(
    /^<svg([^>]*)>/,
    (_, attributes: string) =>
      `<svg role="img" aria-label="${escaped(title)}"${attributes}><title>${escaped(title)}</title><desc>${escaped(description)}</desc>`,
  );
}
