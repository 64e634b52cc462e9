import { hostname } from "node:os";
import { resolve } from "node:path";
import { z } from "zod";
import { forgetEndedSignIns } from "../src/accounts/identity/session-store.ts";
import { closeAlert, openAlert, syncAlerts } from "../src/alerts/store.ts";
import { reasonOf } from "../src/errors.ts";
import type { Tidied } from "../src/housekeeping/batch-store.ts";
import { thinCalibrations } from "../src/housekeeping/calibration-retention-store.ts";
import { diskProblem, readDisk } from "../src/housekeeping/disk.ts";
import { listUnscored } from "../src/forecasts/score/unscored-store.ts";
import { listDisksWithoutWorker } from "../src/housekeeping/health-store.ts";
import { listPrunes, trimQuarantine } from "../src/housekeeping/prune-store.ts";
import {
  countUnread,
  dropPartition,
  keepPayloads,
  listOldPartitions,
  makePartitions,
  trimKeptPayloads,
} from "../src/housekeeping/store.ts";
import { rollUpUptime } from "../src/housekeeping/uptime-store.ts";
import { watchLedger } from "../src/ledger/watch.ts";
import { listLateMails } from "../src/mail/outbox-store.ts";
import { maySettle } from "../src/pass/stores/payload-store.ts";
import { watchOverdueApprovals, watchSuspense } from "../src/topups/bank/watch.ts";
import { job, type Counts, type JobContext } from "../src/queue/job.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * Keep room: make the days ahead, drop the days that are over, bound what garbage may take, say when the disk is
 * nearly full, and recompute the ledger every night.
 *
 * A day of payloads is dropped only when all of it was read and what was refused or quarantined is kept elsewhere. It
 * is removed in small steps, for none of which others wait longer than 200 ms, and any step may be repeated.
 */
export default job({
  name: "housekeep",
  payload: z.object({ kind: z.enum(["partitions", "retention", "disk", "unscored", "uptime", "suspense", "ledger"]) }),
  key: ({ kind }) => kind,
  schedule: () =>
    Promise.resolve([
      { payload: { kind: "partitions" as const }, everyMs: HOUR_MS, offsetMs: 7 * MINUTE_MS },
      { payload: { kind: "retention" as const }, everyMs: HOUR_MS, offsetMs: 23 * MINUTE_MS },
      { payload: { kind: "disk" as const }, everyMs: MINUTE_MS, offsetMs: 0 },
      { payload: { kind: "unscored" as const }, everyMs: MINUTE_MS, offsetMs: 0 },
      { payload: { kind: "uptime" as const }, everyMs: 5 * MINUTE_MS, offsetMs: 0 },
      { payload: { kind: "suspense" as const }, everyMs: MINUTE_MS, offsetMs: 0 },
      { payload: { kind: "ledger" as const }, everyMs: 24 * HOUR_MS, offsetMs: 3 * HOUR_MS + 41 * MINUTE_MS }, // 03:41 UTC
    ]),
  sweep: null,
  concurrency: 2, // a long retention must not keep the disk from being watched
  timeoutMs: 600_000,
  retry: { attempts: 3, firstMs: 60_000, maxMs: 300_000 },
  pool: "long",

  async run({ kind }, context) {
    const counts = await WORK[kind](context);
    await closeAlert(context.sql, context.log, { kind: "housekeep", subject: kind });
    return counts;
  },

  gaveUp: ({ kind }, reason, { sql, log }) =>
    openAlert(sql, log, {
      kind: "housekeep",
      subject: kind,
      text: `housekeep ${kind} failed in each of its attempts, and is tried again by its schedule: ${reason}`,
    }),
});

const WORK = {
  async partitions({ sql }: JobContext): Promise<Counts> {
    await makePartitions(sql);
    return { made: 1 };
  },
  retention: retain,
  disk: watchDisk,
  unscored: watchScores,
  async uptime({ sql }: JobContext): Promise<Counts> {
    return { written: await rollUpUptime(sql) };
  },
  async suspense({ sql, log }: JobContext): Promise<Counts> {
    return { lines: await watchSuspense(sql, log) };
  },
  async ledger({ sql, log, signal }: JobContext): Promise<Counts> {
    return watchLedger(sql, log, signal);
  },
};

async function retain({ sql, settings, log, signal }: JobContext): Promise<Counts> {
  const counts = { dropped: 0, kept: 0, waiting: 0, trimmed: 0, pruned: 0 };
  const report = ({ table, rows, state }: Tidied & { table: string }) => {
    counts.pruned += rows;
    if (state === "busy") counts.waiting += 1;
    const left = {
      done: "",
      more: "; the next hour continues",
      busy: "; the rest is in use and is kept for another hour",
    }[state];
    if (rows > 0 || state === "busy")
      log.info({ table, rows, state }, `${rows} rows of ${table} were older than they are kept${left}`);
  };
  await runAll(signal, [
    async () => {
      for (const partition of await listOldPartitions(sql, settings.PAYLOAD_RETENTION_HOURS)) {
        signal.throwIfAborted();
        const { name, day } = partition;
        if (partition.parent === "payloads") {
          const unread = await countUnread(sql, partition);
          if (unread > 0) {
            log.warn({ day, unread }, `${unread} responses of ${day} are not read yet; the day is kept until they are`);
            counts.waiting += 1;
            continue;
          }
        }
        try {
          if (partition.parent === "payloads") counts.kept += await keepPayloads(sql, partition, signal);
          await dropPartition(sql, partition);
          counts.dropped += 1;
        } catch (error) {
          signal.throwIfAborted();
          log.warn({ partition: name }, `${name} is kept for another hour: ${reasonOf(error)}`);
          counts.waiting += 1;
        }
      }
    },
    async () => void (counts.trimmed += await trimKeptPayloads(sql, signal)),
    async () => {
      for (const { table, dropped } of await trimQuarantine(sql, signal)) {
        log.warn({ table, dropped }, `${table} has too many quarantined items; the ${dropped} oldest were dropped`);
        counts.trimmed += dropped;
      }
    },
    ...listPrunes(sql, signal).map((prune) => async () => report(await prune())),
    async () => report({ table: "calibrations", ...(await thinCalibrations(sql, signal)) }),
    async () => void (counts.pruned += await forgetEndedSignIns(sql)),
    async () => syncAlerts(sql, log, "mail_given_up", await listLateMails(sql)),
    () => watchOverdueApprovals(sql, log),
  ]);
  return counts;
}

/** Runs every step, also after one has failed. @throws the failures */
async function runAll(signal: AbortSignal, steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) {
    signal.throwIfAborted();
    await step().catch((error: unknown) => failures.push(error));
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, failures.map(reasonOf).join("; "));
}

/** Raises an alert for each table whose ended forecasts have had no score for five minutes, unless staff paused the scoring. */
async function watchScores({ sql, log }: JobContext): Promise<Counts> {
  const unscored = await listUnscored(sql);
  if (!(await maySettle(sql))) return { unscored: unscored.length };
  const alerts = unscored.map(({ table, since }) => ({
    subject: table,
    text: `${table}: forecasts that ended since ${since} are not scored; see whether the queue score-accuracy is paused or fails`,
  }));
  await syncAlerts(sql, log, "unscored", alerts);
  return { unscored: unscored.length };
}

async function watchDisk({ sql, settings, log }: JobContext): Promise<Counts> {
  const here = { host: hostname(), folder: resolve(settings.DATA_DIR) };
  const { folder } = here;
  const alert = { kind: "disk", subject: `${here.host}:${folder}` };
  const problem = diskProblem(folder, await readDisk(folder));
  if (problem === null) await closeAlert(sql, log, alert);
  else await openAlert(sql, log, { ...alert, text: problem });
  for (const subject of await listDisksWithoutWorker(sql, here)) await closeAlert(sql, log, { ...alert, subject });
  return { low: problem === null ? 0 : 1 };
}
