import { say } from "./output.ts";
import { progressBar } from "./progress.ts";

/** Without a terminal, a line is written at most this often. */
const LINE_EVERY_MS = 5000;

/**
 * Progress of long work with its rate and the time that is left: a bar at a terminal, else a line on stderr every five
 * seconds. `now` is in milliseconds.
 */
export function runProgress(what: string, now: () => number = Date.now) {
  const bar = progressBar();
  let began: { at: number; done: number } | null = null;
  let printedAt = now();
  return {
    show: (done: number, of: number): void => {
      const at = now();
      began ??= { at, done };
      const text = `${what}${rateText(done - began.done, of - done, at - began.at)}`;
      if (process.stderr.isTTY) bar.show(text, done, of);
      else if (at - printedAt >= LINE_EVERY_MS) {
        printedAt = at;
        say(`${text}: ${done} of ${of}`);
      }
    },
    end: () => bar.end(),
  };
}

/** `, 210000/s, 12 s left`; empty before a rate is known. */
function rateText(done: number, left: number, ms: number): string {
  if (done <= 0 || ms <= 0) return "";
  const perSecond = (done / ms) * 1000;
  return `, ${Math.round(perSecond)}/s, ${timeText(left / perSecond)} left`;
}

function timeText(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
