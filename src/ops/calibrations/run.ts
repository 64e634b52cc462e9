import { z } from "zod";
import { cancelRun, resumeRun, type RunChange } from "../../calibration/runs/run-change-store.ts";
import { type ListedRun, findRun, listChildRuns } from "../../calibration/runs/run-list-store.ts";
import { auditedAction, type Change } from "../audited-action.ts";
import { opsPage } from "../contract.ts";
import { PageError } from "../../frame/errors.ts";
import { idOf } from "../../frame/path-id.ts";
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

const form = z.object({ reason });

/** Stops a run at its next chunk. */
export const cancelRunAction = auditedAction({
  name: "calibration.cancel",
  path: "/calibrations/runs/:run/cancel",
  roles: ["data"],
  isDangerous: false,
  form,
  change: (tx, { params }) =>
    changeRun(
      params["run"],
      (id) => cancelRun(tx, id),
      ({ id, isStopping }) => (isStopping ? `Run ${id} stops at its next chunk` : `Run ${id} cancelled`),
    ),
});

/** Queues a run that was cancelled or has failed. */
export const resumeRunAction = auditedAction({
  name: "calibration.resume",
  path: "/calibrations/runs/:run/resume",
  roles: ["data"],
  isDangerous: false,
  form,
  change: (tx, { params }) =>
    changeRun(
      params["run"],
      (id) => resumeRun(tx, id),
      ({ id }) => `Run ${id} queued; it resumes from its last checkpoint`,
    ),
});

async function changeRun(
  text: string | undefined,
  work: (id: string) => Promise<RunChange | null>,
  messageOf: (run: ListedRun) => string,
): Promise<Change> {
  const id = idOf(text);
  if (id === null) throw new PageError(404, "there is no such run");
  const done = await work(String(id));
  if (done === null) throw new PageError(404, `there is no manual run ${id}`);
  if (!done.ok) return { ok: false, problem: done.reason };
  const [before, after] = [factsOf(done.before), factsOf(done.after)];
  const [target, location] = [`run ${id} of ${done.after.table}`, `${CALIBRATIONS}/runs/${id}`];
  return { ok: true, target, before, after, message: messageOf(done.after), location };
}

function factsOf({ status, isStopping, atSeq }: ListedRun) {
  return { status: isStopping ? "stopping" : status, at_seq: atSeq === null ? null : String(atSeq) };
}
