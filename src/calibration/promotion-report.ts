import type { Promoted } from "./promote.ts";

/** The audit log entry of a promotion. */
export function promotionReport(done: Promoted) {
  const { calibration_id, promoted_from, table, model, previous_model, version, to_seq, by, reason } = done;
  return {
    action: "calibration.promote",
    target: `calibration ${promoted_from} of ${table}`,
    before: { model: previous_model },
    after: { calibration: calibration_id, model, version, to_seq, by },
    reason,
  };
}
