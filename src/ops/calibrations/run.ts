import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import type { Transaction } from "../../db/client.ts";
import {
  cancelRun,
  type ListedRun,
  findRun,
  listChildRuns,
  resumeRun,
  type RunChange,
} from "../../calibration/runs/run-list-store.ts";
import { auditEntry } from "../audit-entry.ts";
import { type Done, opsAction, opsPage, type OpsParts, type Sent } from "../contract.ts";
import { PageError } from "../../frame/errors.ts";
import { idOf, reason } from "../payloads/listing.ts";
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
type Form = z.infer<typeof form>;

/** Stops a run at its next chunk. */
export const cancelRunAction = opsAction({
  name: "calibration.cancel",
  path: "/calibrations/runs/:run/cancel",
  roles: ["data"],
  isDangerous: false,
  form,
  run: (parts, sent) =>
    change(parts, sent, {
      name: "calibration.cancel",
      work: cancelRun,
      message: ({ id, isStopping }) => (isStopping ? `Run ${id} stops at its next chunk` : `Run ${id} cancelled`),
    }),
});

/** Queues a run that was cancelled or has failed. */
export const resumeRunAction = opsAction({
  name: "calibration.resume",
  path: "/calibrations/runs/:run/resume",
  roles: ["data"],
  isDangerous: false,
  form,
  run: (parts, sent) =>
    change(parts, sent, {
      name: "calibration.resume",
      work: resumeRun,
      message: ({ id }) => `Run ${id} queued; it resumes from its last checkpoint`,
    }),
});

async function change(
  { sql }: OpsParts,
  { visitor, params, form: given }: Sent<Form>,
  act: {
    name: string;
    work(tx: Transaction, id: string): Promise<RunChange | null>;
    message(run: ListedRun): string;
  },
): Promise<Done> {
  const id = idOf(params["run"]);
  if (id === null) throw new PageError(404, "there is no such run");
  const outcome = await sql.begin(async (tx) => {
    const done = await act.work(tx, String(id));
    if (done?.ok !== true) return done;
    const entry = {
      action: act.name,
      target: `run ${id} of ${done.after.table}`,
      before: factsOf(done.before),
      after: factsOf(done.after),
      reason: given.reason,
    };
    await appendAudit(tx, auditEntry(visitor, entry));
    return done;
  });
  if (outcome === null) throw new PageError(404, `there is no manual run ${id}`);
  if (!outcome.ok) return { ok: false, problem: outcome.reason };
  return { ok: true, message: act.message(outcome.after), location: `${CALIBRATIONS}/runs/${id}` };
}

function factsOf({ status, isStopping, atSeq }: ListedRun) {
  return { status: isStopping ? "stopping" : status, at_seq: atSeq === null ? null : String(atSeq) };
}
