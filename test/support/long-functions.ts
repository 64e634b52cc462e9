import { readFileSync } from "node:fs";
import { parseSync } from "oxc-parser";

const FUNCTIONS = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);

/** Lists the functions of a file that have more than `most` lines, as `FILE NAME`; one without a name has that of its parent. */
export function longFunctions(root: string, file: string, most: number): string[] {
  const text = readFileSync(`${root}/${file}`, "utf8");
  const found = new Set<string>();
  const visit = (node: unknown, parent: string): void => {
    if (typeof node !== "object" || node === null) return;
    if (Array.isArray(node)) return node.forEach((one) => visit(one, parent));
    const name = nameOf(node) ?? parent;
    if ("type" in node && FUNCTIONS.has(String(node.type)) && linesOf(text, node) > most) found.add(`${file} ${name}`);
    for (const child of Object.values(node)) visit(child, name);
  };
  visit(parseSync(file, text).program, "module");
  return [...found];
}

/** The name of a declaration, a variable or a property; null for any other node. */
function nameOf(node: object): string | null {
  for (const part of ["id", "key"] as const) {
    const named: unknown = part in node ? (node as Record<string, unknown>)[part] : null;
    if (typeof named === "object" && named !== null && "name" in named) return String(named.name);
  }
  return null;
}

function linesOf(text: string, node: object): number {
  const { start, end } = node as { start: number; end: number };
  return text.slice(start, end).split("\n").length;
}
