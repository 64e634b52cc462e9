import type { Config } from "vega-lite";

/**
 * The style of all plots. Colors are CSS variables of the page, so that one drawing fits light and dark mode; outside a
 * page they fall back to the text color.
 */
const INK = "currentColor";
export const SOFT = "var(--muted, currentColor)";
const LINE = "var(--border, currentColor)";
export const FIRST = "var(--accent, currentColor)";
export const SECOND = "var(--warn, currentColor)";

export const THEME: Config = {
  // the padding is part of the size, so that every plot has exactly its width
  autosize: { type: "fit", contains: "padding" },
  background: "transparent",
  padding: 4,
  font: "inherit",
  view: { stroke: null },
  axis: {
    domainColor: LINE,
    tickColor: LINE,
    gridColor: LINE,
    labelColor: SOFT,
    titleColor: INK,
    labelFontSize: 12,
    titleFontSize: 12,
    titleFontWeight: "normal",
    labelOverlap: "greedy",
  },
  legend: { labelColor: INK, titleColor: INK, labelFontSize: 12, titleFontSize: 12, orient: "top", title: null },
};

/** The maximum size of a plot in pixels; it shrinks with the window. */
export const SIZE = { width: 640, height: 360 } as const;
