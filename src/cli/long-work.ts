import { listenForInterruption } from "./interruption.ts";
import { runProgress } from "./run-progress.ts";

/** What long work receives. */
interface LongWork {
  /** Aborts at Ctrl-C and SIGTERM, to be honored between two steps. */
  signal: AbortSignal;
  progress: (done: number, of: number) => void;
}

/** Runs long work with its progress; Ctrl-C stops it with the error `interrupted`. */
export async function withProgress<Result>(
  { title, interrupted }: { title: string; interrupted: string },
  work: (given: LongWork) => Promise<Result>,
): Promise<Result> {
  const interruption = listenForInterruption(interrupted);
  const progress = runProgress(title);
  try {
    return await work({ signal: interruption.signal, progress: progress.show });
  } finally {
    progress.end();
    interruption.end();
  }
}
