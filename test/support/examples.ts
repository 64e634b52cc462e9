import { readFileSync } from "node:fs";
import { compileFunction } from "node:vm";

/** One `@example` of a doc comment: its place and its lines. */
export type Example = { title: string; lines: string[] };

/** The result of one line of an example, and what its `// =>` claims. */
export type Claim = { line: string; actual: unknown; expected: unknown };

/** All examples in the doc comments of a source file. */
export function listExamples(path: string): Example[] {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const comments = readFileSync(path, "utf8").matchAll(/\/\*\*(.*?)\*\/\s*(?:export )?(?:async )?\w+ (\w+)/gs);
  return [...comments].flatMap(([, comment, symbol]) => {
    const [, ...examples] = comment!.split(/^\s*\* @example[^\S\n]*\n/m);
    return examples.map((text) => ({
      title: `${name} ${symbol}`,
      lines: text
        .split(/^\s*\* @/m, 1)[0]!
        .split("\n")
        .map((line) => line.replace(/^\s*\* ?/, "").trim())
        .filter((line) => line !== ""),
    }));
  });
}

/**
 * Run an example with the exports of its module in scope.
 *
 * Each line `expression; // => value` is a claim; other lines prepare. Numbers are compared to as many decimals as the
 * claim shows.
 */
export function runExample({ lines }: Example, exports: Record<string, unknown>): Claim[] {
  const body = lines.map((line, i) => {
    const [code, expected] = line.split(/;?\s*\/\/ => /);
    return expected === undefined ? line : `claim(${i}, ${code}, ${expected});`;
  });
  const claims: Claim[] = [];
  const claim = (i: number, actual: unknown, expected: unknown) =>
    claims.push({ line: lines[i]!, actual: rounded(actual, decimalsOf(lines[i]!)), expected });
  compileFunction(body.join("\n"), ["claim", ...Object.keys(exports)])(claim, ...Object.values(exports));
  return claims;
}

/** The most decimals any number right of the arrow has; null without a fraction, where only equality will do. */
function decimalsOf(line: string): number | null {
  const fractions = [...line.split("// => ")[1]!.matchAll(/\d\.(\d+)/g)].map(([, digits]) => digits!.length);
  return fractions.length === 0 ? null : Math.max(...fractions);
}

function rounded(value: unknown, decimals: number | null): unknown {
  if (decimals === null) return value;
  if (typeof value === "number") return Number(value.toFixed(decimals));
  if (Array.isArray(value)) return value.map((item) => rounded(item, decimals));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, rounded(item, decimals)]));
}
