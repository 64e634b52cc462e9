import { parse, View } from "vega";
import { compile, type TopLevelSpec } from "vega-lite";

/** A row of the plot. */
export type PlottedWindow = {
  forecaster: string;
  feature: string;
  n: number;
  stated: number;
  measured: number;
  low: number;
  high: number;
};

/**
 * Stated against measured probability as SVG: a point per window with its 95 % interval, and the diagonal.
 */
export async function reliabilityPlot(rows: readonly PlottedWindow[]): Promise<string> {
  const share = {
    type: "quantitative" as const,
    scale: { domain: [0.45, 1] },
    axis: { format: ".0%", tickCount: 6 },
  };
  const forecaster = { field: "forecaster", type: "nominal" as const };
  const spec: TopLevelSpec = {
    width: 420,
    height: 420,
    background: "white",
    title: { text: "Stated and measured probability", subtitle: `windows on real bustabit games, ${samples(rows)}` },
    layer: [
      {
        data: { values: [{ p: 0.45 }, { p: 1 }] },
        mark: { type: "line", color: "#999", strokeDash: [4, 4] },
        encoding: { x: { field: "p", ...share }, y: { field: "p", ...share } },
      },
      {
        data: { values: [...rows] },
        mark: { type: "rule" },
        encoding: {
          x: { field: "stated", ...share, title: "stated probability" },
          y: { field: "low", ...share, title: "share of hits, with 95 % interval" },
          y2: { field: "high" },
          color: forecaster,
        },
      },
      {
        data: { values: [...rows] },
        mark: { type: "point", filled: true, size: 60 },
        encoding: {
          x: { field: "stated", ...share },
          y: { field: "measured", ...share },
          color: { ...forecaster, title: null, scale: { range: ["#1f5fa8", "#d1702b"] } },
          shape: forecaster,
        },
      },
    ],
  };
  const view = new View(parse(compile(spec).spec), { renderer: "none" });
  try {
    return `${await view.toSVG()}\n`;
  } finally {
    view.finalize();
  }
}

function samples(rows: readonly PlottedWindow[]): string {
  const sizes = rows.map(({ n }) => n);
  return `${Math.min(...sizes).toLocaleString("en")} to ${Math.max(...sizes).toLocaleString("en")} of each`;
}
