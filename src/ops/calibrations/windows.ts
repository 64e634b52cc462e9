import type { Detail } from "../../calibration/calibration-view.ts";
import { between, digits, share } from "../../frame/accuracy-format.ts";
import { evidence } from "../accuracy/formats.ts";

/** What {@link windowRows} gives. */
export const WINDOW_COLUMNS = ["window", "n", "stated", "came true", "95 % interval", "z", "e-value", "voids"];

type Window = Pick<
  Detail["windows"][number],
  "feature" | "sample_size" | "expected_rate" | "hit_rate" | "interval_95" | "z" | "e_value" | "voids"
>;

/** How windows did in a replay, as rows of texts. */
export function windowRows(windows: readonly Window[]): string[][] {
  return windows.map((one) => [
    one.feature,
    String(one.sample_size),
    share(one.expected_rate),
    share(one.hit_rate),
    between(one.interval_95),
    digits(one.z, 2),
    evidence(one.e_value),
    String(one.voids),
  ]);
}
