import type { ListedRun } from "../../calibration/run-list-store.ts";
import type { Tone } from "../../frame/format.ts";

/** Where calibrations begin. */
export const LIST = "/ops/calibrations";

/** What a run's status should look like. */
const RUN_TONES: Record<ListedRun["status"], Tone> = {
  queued: "info",
  running: "info",
  done: "good",
  failed: "bad",
  cancelled: "warn",
};

/** How far a run is, in parts per million of its range, and the seconds left at its rate; null where nobody can tell. */
function progressOf(run: ListedRun): { ppm: number; done: bigint; of: bigint; secondsLeft: number | null } {
  const of = run.toSeq - run.fromSeq + 1n;
  const done = run.status === "done" ? of : run.atSeq === null ? 0n : run.atSeq - run.fromSeq + 1n;
  const secondsLeft =
    run.status === "running" && run.perSecond !== null && run.perSecond > 0 ? Number(of - done) / run.perSecond : null;
  return { ppm: Number((done * 1_000_000n) / of), done, of, secondsLeft };
}

/** A run with what a page says of it. */
export function runView(run: ListedRun) {
  return { ...run, ...progressOf(run), tone: RUN_TONES[run.status] };
}
