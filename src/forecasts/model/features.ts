/** The features that are forecast of a table: the color of the next round, and windows of each color. */

/** The feature that forecasts the next round only. */
export const NEXT_COLOR = "next_color";

/** Targets of windows in percent, as in the feature names `window:<color>:<target>`. */
export const WINDOW_TARGETS = [50, 80, 90] as const;

/** Longest window; a color that is too rare for it gets none. */
export const WINDOW_ROUNDS_MAX = 400;

/** Prefix of the names of windows. */
const WINDOW = "window:";

/**
 * The feature of a window: this color within as many of the next rounds as are needed to reach the target in percent.
 *
 * @example
 * windowFeature("pink", 80); // => "window:pink:80"
 */
export function windowFeature(color: string, target: number): string {
  return `${WINDOW}${color}:${target}`;
}

/**
 * Whether a feature is a window.
 *
 * @example
 * isWindow("window:pink:80"); // => true
 * isWindow("next_color"); // => false
 */
export function isWindow(feature: string): boolean {
  return feature.startsWith(WINDOW);
}
