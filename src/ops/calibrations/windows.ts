import type { Detail } from "../../calibration/calibration-view.ts";
import { digits, ratesText } from "../../frame/text/accuracy-format.ts";
import { evidence } from "../accuracy/formats.ts";

/** What {@link windowRows} gives. */
export const WINDOW_COLUMNS = ["Window", "n", "Stated", "Observed", "95 % interval", "z", "e-value", "Voids"];

type Window = Pick<
  Detail["windows"][number],
  "feature" | "sample_size" | "expected_rate" | "hit_rate" | "interval_95" | "z" | "e_value" | "voids"
>;

/** How windows did in a replay, as rows of texts. */
export function windowRows(windows: readonly Window[]): string[][] {
  return windows.map((one) => {
    const { stated, rate, interval } = ratesText({ ...one, baseline_rate: null, rate_bounds: null });
    return [
      one.feature,
      String(one.sample_size),
      stated,
      rate,
      interval,
      digits(one.z, 2),
      evidence(one.e_value),
      String(one.voids),
    ];
  });
}
