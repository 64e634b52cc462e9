import { type RunningServer, type StopSteps, stopServer } from "./process.ts";
import type { ServerLog } from "./server-log.ts";

/**
 * A running private server: `url` has its password; `ended` settles with the end of its log if the server ends without
 * `stop`.
 */
export interface PrivateServer {
  url: string;
  ended: Promise<string>;
  stop(): Promise<void>;
}

/** The lines of its log that explain the end: those of its start do not. */
const LAST_LINES = 6;
const NEVER = new Promise<never>(() => undefined);

/**
 * Watches a server that is ready until `stop` is called or it ends by itself, which settles `ended`. Then closes its log.
 */
export function watchServer(
  server: RunningServer,
  log: ServerLog,
  logged: number,
  steps: StopSteps,
): Omit<PrivateServer, "url"> {
  let stopping = false;
  const gone = server.exited.then(async (how) => {
    const words = stopping ? "" : await log.since(logged);
    await log.close();
    return `${how}; ${words.split("\n").slice(-LAST_LINES).join("\n")}`;
  });
  return {
    ended: gone.then((how) => (stopping ? NEVER : how)),
    stop: async () => {
      stopping = true;
      await stopServer(server, steps);
      await gone;
    },
  };
}
