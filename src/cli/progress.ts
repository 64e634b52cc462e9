import cliProgress from "cli-progress";

/** A progress bar on stderr; nothing if stderr is not a terminal. */
export interface Progress {
  /** Shows how much of the total is done for the named work. */
  show: (what: string, done: number, of: number) => void;
  end: () => void;
}

/** A bar that appears with the first progress. */
export function progressBar(): Progress {
  const isShown = process.stderr.isTTY;
  const bar = new cliProgress.SingleBar({
    format: "{what} [{bar}] {percentage} %",
    stream: process.stderr,
    clearOnComplete: true,
    hideCursor: true,
    barsize: 30,
  });
  let isStarted = false;
  return {
    show(what, done, of) {
      if (!isShown || of === 0) return;
      if (!isStarted) bar.start(of, done, { what });
      isStarted = true;
      bar.setTotal(of);
      bar.update(done, { what });
    },
    end() {
      if (isStarted) bar.stop();
      isStarted = false;
    },
  };
}
