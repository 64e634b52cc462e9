import type { Config } from "vega-lite";

/**
 * How all plots look. Colors are those of the page around them, by CSS variables, so that one drawing is right in light
 * and in dark; a drawing that stands alone falls back to the color of its text.
 */
const INK = "currentColor";
export const SOFT = "var(--muted, currentColor)";
const LINE = "var(--border, currentColor)";
export const FIRST = "var(--accent, currentColor)";
export const SECOND = "var(--warn, currentColor)";

export const THEME: Config = {
  // the space around the axes is part of the size, so that every plot is as wide as it says
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

/** The size of a plot in pixels; it is never drawn larger, and smaller where the window is. */
export const SIZE = { width: 640, height: 360 } as const;
