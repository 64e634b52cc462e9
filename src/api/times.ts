import { READ_EVERY_MS } from "../published/memory.ts";

/** Deadlines and intervals of the API, in milliseconds. */
export interface ApiTimes {
  /** A call waits this long for the lookup of its caller before a 503; counting the call may take as long again. */
  lookupMs: number;
  /** How long a cached caller is valid without a notification of a change. */
  cachedMs: number;
  /** A call that is not sent to the database within this time is refused. Times begin when its response is ready. */
  sentWithinMs: number;
  /** The database does not count a call after this time. */
  countedWithinMs: number;
  /** How long its verdict is awaited: longer than the above, so that a call counted at the last moment is served. */
  verdictMs: number;
  /** A read of `/usage` is cancelled after this time. */
  usageMs: number;
  /** The interval of reading all published data without a notification; a replica is read each second. */
  readEveryMs: number;
}

export const TIMES: ApiTimes = {
  lookupMs: 300,
  cachedMs: 5_000,
  sentWithinMs: 500,
  countedWithinMs: 700,
  verdictMs: 950,
  usageMs: 600,
  readEveryMs: READ_EVERY_MS,
};
