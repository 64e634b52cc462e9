/** A requested tile: its level or the entries, its number, and how many hashes or entries of it. */
export interface TilePath {
  level: number | "entries";
  n: number;
  width: number;
}

const PATH = /^(?<level>entries|[0-5])\/(?<n>(?:x\d{3}\/){0,4}\d{3})(?:\.p\/(?<width>[1-9]\d{0,2}))?$/;

/**
 * Reads a path of C2SP tlog-tiles below `/tile/`; null when it is none.
 *
 * @example
 * parseTilePath("0/x001/234.p/5"); // => { level: 0, n: 1234, width: 5 }
 * parseTilePath("entries/000"); // => { level: "entries", n: 0, width: 256 }
 * parseTilePath("0/1"); // => null
 */
export function parseTilePath(path: string): TilePath | null {
  const { level, n = "", width = "256" } = PATH.exec(path)?.groups ?? {};
  const isPadded = n.startsWith("x000/"); // one number has one path
  const isWhole = path.includes(".p/") && Number(width) > 255;
  if (level === undefined || isPadded || isWhole) return null;
  return {
    level: level === "entries" ? "entries" : Number(level),
    n: Number(n.replaceAll(/[x/]/g, "")),
    width: Number(width),
  };
}
