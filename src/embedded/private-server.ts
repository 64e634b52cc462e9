import { type RunningServer, type StopSteps, stopServer } from "./process.ts";
import type { ServerLog } from "./server-log.ts";

/**
 * A private server that runs: `url` holds its password; `ended` settles, with the end of its log, when it goes
 * without being asked.
 */
export interface PrivateServer {
  url: string;
  ended: Promise<string>;
  stop(): Promise<void>;
}

/** What a server said at its start does not tell why it ended. */
const LAST_LINES = 6;
const NEVER = new Promise<never>(() => undefined);

/**
 * The end of a server that is ready: asked for, by `stop`, or not, which settles `ended`. Its log is closed after it.
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
