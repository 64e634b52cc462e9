import pino from "pino";
import pretty from "pino-pretty";

export type Log = pino.Logger;

const SECRET_FIELDS = ["authorization", "cookie", "x-api-key", "api_key", "password", "token", "secret"];

/**
 * The logger of a process: JSON lines on stderr, or readable lines where stderr is a terminal.
 *
 * Facts go to stdout, talk to stderr, so a command's output can be piped while it logs. Fields that carry secrets are
 * redacted at any of the first three depths; URLs of servers go through {@link withoutPassword} before they are logged.
 */
export function createLog(level: string, terminal: boolean): Log {
  const paths = SECRET_FIELDS.flatMap((field) => [`["${field}"]`, `*["${field}"]`, `*.*["${field}"]`]);
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths, censor: "[redacted]" },
  };
  return terminal
    ? pino(options, pretty({ destination: 2, sync: true, translateTime: "SYS:HH:MM:ss.l", ignore: "pid,hostname" }))
    : pino(options, pino.destination({ dest: 2, sync: true }));
}

/** A server's URL with its password replaced, for logs and messages. */
export function withoutPassword(url: string): string {
  return url.replace(/(?<=:\/\/[^/@\s]*):[^/@\s]*@/, ":***@");
}
