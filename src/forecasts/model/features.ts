/** What is forecast of a table: the color of the next round, and windows of each color. */

/** The feature that speaks of the next round alone. */
export const NEXT_COLOR = "next_color";

/** Targets of windows in percent, as in the feature names `window:<color>:<target>`. */
export const WINDOW_TARGETS = [50, 80, 90] as const;

/** A window longer than this says nothing; a color that rare gets none. */
export const WINDOW_ROUNDS_MAX = 400;

/** What the names of all windows begin with. */
const WINDOW = "window:";

/**
 * The feature of a window: this color within the next rounds, as many as it takes to reach the target in percent.
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
