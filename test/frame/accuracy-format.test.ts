import { expect, it } from "vitest";
import { createDrawer } from "../../src/charts/draw.ts";
import { reliabilityFigure, ratesOf } from "../../src/frame/text/accuracy-format.ts";

const bins = [{ p_from: 0.5, p_to: 0.6, n: 9_000, mean_p: 0.5, hits: 4_500 }];
const counts = { n: 9_000n, hits: 4_500n, sumP: 4_500_000_000n, sumPBase: 4_500_000_000n };
const more = { voids: 1_000n, pending: 0n, notIssued: 0n, receivedRounds: 10_000n };
const rates = [{ at: "2026-11-01T00:00:00.0000000Z", ...counts, ...more }];

it.for([
  ["bins", (isWithheld: boolean) => reliabilityFigure("bins", bins, isWithheld)],
  ["rates", (isWithheld: boolean) => ratesOf(rates, "day", isWithheld)],
] as const)("the %s of a record have intervals unless these are withheld", async ([, figureOf]) => {
  const drawer = createDrawer();
  try {
    const marks = [];
    for (const isWithheld of [false, true]) {
      const { plot, columns, rows } = figureOf(isWithheld);
      expect(columns.includes("95 % interval")).toBe(!isWithheld);
      expect(rows.map((row) => row.length)).toEqual([columns.length]);
      expect(rows[0]?.includes("49.0 % to 51.0 %")).toBe(!isWithheld);
      expect(rows[0]?.filter((cell) => cell === "50.0 %").length).toBeGreaterThan(1);
      expect(plot.description.includes("interval")).toBe(!isWithheld);
      const svg = await drawer.draw(plot);
      expect(svg).not.toMatch(/NaN|undefined/);
      marks.push(svg.match(/<(?:path|line) /g)?.length);
      expect(JSON.stringify(plot.spec).includes('"low":0.4896')).toBe(!isWithheld);
    }
    expect(marks[0]).toBeGreaterThan(marks[1] ?? 0);
  } finally {
    await drawer.close();
  }
});
