import type { ListedRun } from "../../calibration/runs/run-list-store.ts";
import { number, type Tone } from "../../frame/text/format.ts";

/** The path of the list of calibrations. */
export const CALIBRATIONS = "/ops/calibrations";

/** The tone of each status of a run. */
const RUN_TONES: Record<ListedRun["status"], Tone> = {
  queued: "info",
  running: "info",
  done: "good",
  failed: "bad",
  cancelled: "warn",
};

/** Progress of a run in parts per million of its range, and the seconds left at its rate; null if unknown. */
function progressOf(run: ListedRun): { ppm: number; done: bigint; of: bigint; secondsLeft: number | null } {
  const of = run.toSeq - run.fromSeq + 1n;
  const done = run.status === "done" ? of : run.atSeq === null ? 0n : run.atSeq - run.fromSeq + 1n;
  const secondsLeft =
    run.status === "running" && run.perSecond !== null && run.perSecond > 0 ? Number(of - done) / run.perSecond : null;
  return { ppm: Number((done * 1_000_000n) / of), done, of, secondsLeft };
}

/**
 * Rounds of a run's range, in words: stored rounds in the order received, or numbers of round ids. Late rounds and missing
 * numbers are not replayed.
 */
function roundsText(run: ListedRun, done: bigint, of: bigint): string {
  const { replayed, order } = run;
  if (replayed === null || replayed >= of) return `${number(done)} of ${number(of)} rounds`;
  if (order === "round")
    return `${number(of)} round ids, ${number(replayed)} replayed (${number(of - replayed)} missing)`;
  return `${number(of)} rounds stored, ${number(replayed)} replayed (${number(of - replayed)} late)`;
}

/** A run with its progress and its status as pages show it. */
export function runView(run: ListedRun) {
  const progress = progressOf(run);
  const status = run.isStopping ? "stopping" : run.isSilent ? "silent" : run.status;
  return {
    ...run,
    ...progress,
    roundsText: roundsText(run, progress.done, progress.of),
    isOpen: run.status === "queued" || run.status === "running",
    shownStatus: status,
    tone: run.isSilent ? "bad" : RUN_TONES[run.status],
  };
}
