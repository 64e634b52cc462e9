/**
 * How much of what is left over is kept. Rounds, forecasts, scores and conflicts are facts and have no limit.
 */

/** Partitions made ahead, in days: a weekend in which housekeep does not run loses no payload. */
export const DAYS_AHEAD = 4;
/** Sums and failures of polls, for "was it like this last week?". */
export const POLLS_KEPT_DAYS = 14;
/** The facts of the meter; their counts stay. Two months, so that any month can be recomputed while it is being billed. */
export const USAGE_FACTS_KEPT_DAYS = 62;
/** Calls by minute, for their holders to look at: after the end of their day, so that the last 24 hours are always there. */
export const CALL_MINUTES_KEPT_DAYS = 1;
/**
 * Payloads of one house kept beyond their day, oldest dropped first: a feed that breaks and responds differently every
 * 2 s gives 1,800 an hour, so this is more than an hour of the newest, and enough to replay after a fix. A gzipped
 * page of 50 rounds is 2 to 5 kB; the limit in bytes is for responses of megabytes: fifty such houses need 3.2 GB.
 */
export const KEPT_PER_HOUSE = { rows: 2_000, bytes: 64 << 20 } as const;
/** Open quarantined items of one table: no one reads more, and a feed that sends only garbage must not fill the disk. */
export const OPEN_QUARANTINE_PER_TABLE = 10_000;
/** Time for these in one run, half of what it has: each response may add 1,000, so a number of batches would not do. */
export const TRIM_QUARANTINE_MS = 300_000;
/**
 * Rolling calibrations of a table and model: the newest (two hours, and more than a replay may have to pass over), the
 * last of each day for a month, and the last of each month permanently. One has some 20 kB, and there may be four an hour.
 */
export const CALIBRATIONS_KEPT = { newest: 8, days: 30 } as const;
/** A rolling calibration that did not meet the live state is what a person looks into. */
export const DIFFERENCES_KEPT_DAYS = 90;
/** Rolling runs that ended without their own record: nothing was learned, failed, called off. */
export const RUNS_KEPT_DAYS = 7;
/** Calls by day: a year, and the month in which its last bill may be disputed. */
export const USAGE_DAYS_KEPT_DAYS = 400;
/** Of the history on the status page; one more than it shows, which begins with today. */
export const UPTIME_KEPT_DAYS = 91;
/** Yesterday is summed again today, and more days after an outage: what is summed again is not deleted before. */
export const UPTIME_MINUTES_KEPT_DAYS = 3;
/** What is over and settled: quarantined items a person decided on, closed notices, closed alerts. */
export const SETTLED_KEPT_DAYS = 90;
/** Rows deleted or copied in one transaction: some tens of milliseconds, so that no one waits behind it. */
export const BATCH = 500;
/** Batches of one kind in one run; the next hour continues. */
export const BATCHES_PER_RUN = 200;
/** What a batch may take, though no one waits for it: then something is wrong with its plan. */
export const BATCH_TIMEOUT_MS = 15_000;
/** How long the detachment of a partition is tried again while transactions use its table. */
export const DETACH_PATIENCE_MS = 5_000;
/** Between two tries, for those who waited behind the first. */
export const DETACH_PAUSE_MS = 2_000;
/** Under this share of free space on the disk of DATA_DIR a person must act. */
export const LEAST_FREE_SHARE = 0.1;
/** A lock that is not had within this is given up for this hour, since all other sessions queue behind the wait. */
export const LOCK_TIMEOUT_MS = 1_000;
