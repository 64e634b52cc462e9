import type { Measured } from "../../forecasts/accuracy/measure.ts";

/** Figures of the operators' pages only; those that visitors see too are in `frame/text/accuracy-format.ts`. */
const NONE = "–";

/** Evidence over many powers of ten. */
export function evidence(e: number | null): string {
  if (e === null) return NONE;
  return e >= 1e5 || (e > 0 && e < 1e-3) ? e.toExponential(1) : e.toPrecision(3);
}

/** Voids by their reason, those that there were. */
export function voidsText(voids: Measured["voids"]): string {
  const kinds = Object.entries(voids).filter(([, n]) => n > 0);
  return kinds.length === 0 ? "0" : kinds.map(([kind, n]) => `${n} ${kind}`).join(", ");
}

/** The name of a table or a whole house. */
export function nameOf({ house, game, market }: Pick<Measured, "house" | "game" | "market">): string {
  return game === null ? house : `${house}/${game}/${market}`;
}
