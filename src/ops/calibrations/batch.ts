import { listRunsOfBatch } from "../../calibration/runs/run-list-store.ts";
import { opsPage } from "../contract.ts";
import { idOf } from "../../frame/path-id.ts";
import { MOST_COMPARED } from "./compare-view.ts";
import { CALIBRATIONS, runView } from "./run-view.ts";

/** Runs that were requested together, one a table: the progress of each and of all. */
export const batchPage = opsPage({
  path: "/calibrations/batches/:batch",
  async show({ sql }, { params }) {
    const id = idOf(params["batch"]);
    const runs = id === null ? [] : (await listRunsOfBatch(sql, String(id))).map(runView);
    if (runs.length === 0) return null;
    const [done, of] = [runs.reduce((sum, run) => sum + run.done, 0n), runs.reduce((sum, run) => sum + run.of, 0n)];
    const calibrations = runs.flatMap(({ calibrationId }) => calibrationId ?? []).slice(0, MOST_COMPARED);
    const data = {
      runs,
      ppm: Number((done * 1_000_000n) / of),
      done,
      of,
      ended: runs.filter(({ isOpen }) => !isOpen).length,
      compare:
        calibrations.length < 2 ? null : `${CALIBRATIONS}/compare?${calibrations.map((one) => `id=${one}`).join("&")}`,
    };
    const crumbs = [
      { label: "Calibrations", href: CALIBRATIONS },
      { label: "Manual runs", href: `${CALIBRATIONS}/runs` },
    ];
    const refresh = runs.some(({ isOpen }) => isOpen) ? { refreshSeconds: 2 } : {};
    return { template: "calibrations/batch", title: `Batch ${id}`, data, crumbs, ...refresh };
  },
});
