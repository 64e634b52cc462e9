import type { Writable } from "node:stream";
import pino from "pino";
import pretty from "pino-pretty";
import { hideSecrets, hideSecretsIn } from "./secrets.ts";

export type Log = pino.Logger;

const REPEATS_QUIET_MS = 60_000;

/**
 * The logger of a process: JSON lines on stderr, or readable lines where stderr is a terminal.
 *
 * Facts go to stdout, talk to stderr, so a command's output can be piped while it logs. Every line goes through
 * {@link hideSecrets} as it is written: what it holds by then includes causes of errors, headers and what was bound to a
 * child, which no list of paths would name. On a terminal a run or a request is one line too. `output` takes the lines
 * instead of stderr.
 */
export function createLog(level: string, terminal: boolean, output?: Writable): Log {
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    hooks: { streamWrite: hideSecrets },
  };
  if (!terminal) return pino(options, output ?? pino.destination({ dest: 2, sync: true }));
  const destination = output ?? 2;
  return pino(options, pretty({ destination, sync: true, translateTime: "SYS:HH:MM:ss.l", singleLine: true }));
}

/**
 * Returns the level for a text that is repeated while a server is unavailable: debug if it was logged as a warning within
 * the last minute.
 */
export function createRepeatLevel(): (text: string) => "warn" | "debug" {
  const loggedAt = new Map<string, number>();
  return (text) => {
    const now = performance.now();
    for (const [one, at] of loggedAt) if (now - at > REPEATS_QUIET_MS) loggedAt.delete(one);
    if (loggedAt.has(text)) return "debug";
    loggedAt.set(text, now);
    return "warn";
  };
}

/** A server's URL with its passwords replaced, for logs and messages. */
export function withoutPassword(url: string): string {
  return hideSecretsIn(url);
}
