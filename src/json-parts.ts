/** A list of a JSON text that is read page by page while the text is written. */
export type Pages = AsyncIterable<readonly unknown[]>;

/**
 * Writes a value as indented JSON, with bigints as text. Members may be {@link Pages}, also those of objects in it: each page
 * is one part of the text, so that a long list is never whole in memory.
 */
export async function* jsonParts(value: unknown, indent = ""): AsyncGenerator<string> {
  const inner = `${indent}  `;
  if (isPages(value)) {
    let before = "[";
    for await (const page of value) {
      if (page.length === 0) continue;
      yield page.map((item, place) => `${place === 0 ? before : ","}\n${inner}${textOf(item, inner)}`).join("");
      before = ",";
    }
    yield before === "[" ? "[]" : `\n${indent}]`;
    return;
  }
  if (!hasPages(value)) return yield textOf(value, indent);
  let before = "{";
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    yield `${before}\n${inner}${JSON.stringify(name)}: `;
    yield* jsonParts(member, inner);
    before = ",";
  }
  yield `\n${indent}}`;
}

function textOf(value: unknown, indent: string): string {
  const text = JSON.stringify(value, (_, one: unknown) => (typeof one === "bigint" ? String(one) : one), 2);
  return text.replaceAll("\n", `\n${indent}`); // line breaks within a text are escaped
}

function isPages(value: unknown): value is Pages {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

function hasPages(value: unknown): value is object {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).some((member) => isPages(member) || hasPages(member));
}
