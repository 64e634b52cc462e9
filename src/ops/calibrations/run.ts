import { z } from "zod";
import { cancelRun, resumeRun } from "../../calibration/runs/run-change-store.ts";
import { findRun, listChildRuns } from "../../calibration/runs/run-list-store.ts";
import { auditedAction } from "../audited-action.ts";
import { opsPage, type Sent } from "../contract.ts";
import { idOf, requireId } from "../../frame/path-id.ts";
import { reason } from "../payloads/listing.ts";
import { CALIBRATIONS, runView } from "./run-view.ts";

/** One manual run: its progress and rate, who requested it and why, its labels, and the runs before and after it. */
export const runPage = opsPage({
  path: "/calibrations/runs/:run",
  async show({ sql }, { params }) {
    const id = idOf(params["run"]);
    const run = id === null ? null : await findRun(sql, String(id));
    if (run === null) return null;
    const children = await listChildRuns(sql, run.id);
    const crumbs = [
      { label: "Calibrations", href: CALIBRATIONS },
      { label: "Manual runs", href: `${CALIBRATIONS}/runs` },
    ];
    const data = { run: runView(run), children };
    const refresh = data.run.isOpen ? { refreshSeconds: 2 } : {};
    const header = { badges: [{ text: data.run.shownStatus, tone: data.run.tone }] };
    return { template: "calibrations/run", title: `Run ${run.id}`, data, crumbs, header, ...refresh };
  },
});

const decision = {
  roles: ["data"],
  isDangerous: false,
  form: z.object({ reason }),
  location: ({ params }: Pick<Sent<unknown>, "params">) => `${CALIBRATIONS}/runs/${params["run"]}`,
} as const;

/** Stops a run at its next chunk. */
export const cancelRunAction = auditedAction({
  ...decision,
  name: "calibration.cancel",
  path: "/calibrations/runs/:run/cancel",
  change: (tx, { params }) => cancelRun(tx, String(requireId(params["run"]))),
});

/** Queues a run that was cancelled or has failed. */
export const resumeRunAction = auditedAction({
  ...decision,
  name: "calibration.resume",
  path: "/calibrations/runs/:run/resume",
  change: (tx, { params }) => resumeRun(tx, String(requireId(params["run"]))),
});
