import { parse, View } from "vega";
import { compile, type TopLevelSpec } from "vega-lite";

/** A point of the plot. */
export type PlottedSize = { tables: number; cpuMs: number; lagMs: number; lateMs: number };

/** Plots the cost of a round and the delays by the number of tables, as SVG. */
export async function scalePlot(sizes: readonly PlottedSize[]): Promise<string> {
  const x = {
    field: "tables",
    type: "quantitative" as const,
    scale: { type: "log" as const },
    axis: { values: sizes.map(({ tables }) => tables), format: "," },
    title: "tables",
  };
  const times = sizes.flatMap(({ tables, lagMs, lateMs }) => [
    { tables, what: "published to readable at the API", seconds: lagMs / 1_000 },
    { tables, what: "lateness of a poll", seconds: lateMs / 1_000 },
  ]);
  const panel = { width: 320, height: 240 };
  const mark = { type: "line" as const, point: { filled: true, size: 60 } };
  const spec: TopLevelSpec = {
    background: "white",
    title: "Ten tables to a house, each house polled every two seconds, a round every 15 s",
    hconcat: [
      {
        ...panel,
        data: { values: [...sizes] },
        mark: { ...mark, color: "#1f5fa8" },
        encoding: { x, y: { field: "cpuMs", type: "quantitative", title: "ms of CPU per round, all processes" } },
      },
      {
        ...panel,
        data: { values: times },
        mark,
        encoding: {
          x,
          y: { field: "seconds", type: "quantitative", title: "99th percentile, seconds" },
          color: {
            field: "what",
            type: "nominal",
            title: null,
            scale: { range: ["#d1702b", "#1f5fa8"] },
            legend: { orient: "bottom", labelLimit: 400 },
          },
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
