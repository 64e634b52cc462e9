import { findLogBehind, findUnreadBacklog } from "../src/alerts/behind-store.ts";
import { closeEndedAlerts } from "../src/alerts/ended-store.ts";
import { createLasting } from "../src/alerts/lasting.ts";
import { syncAlerts } from "../src/alerts/store.ts";
import { clearPostFailure } from "../src/alerts/webhook-store.ts";
import { binancePayOf } from "../src/config/binance-pay.ts";
import { usdtOf } from "../src/config/usdt.ts";
import { makeMissingPartitions } from "../src/housekeeping/store.ts";
import { bringBackTimes } from "../src/housekeeping/times-store.ts";
import { noteWorkUptime } from "../src/housekeeping/uptime-store.ts";
import { findOfflineHouses, findUnreadableTables } from "../src/houses-file/watch-store.ts";
import { findLatePolls, listHeldHouses } from "../src/houses/polling/polling-store.ts";
import { clearSendFailure } from "../src/mail/failure-store.ts";
import type { PeriodicContext, PeriodicTask } from "../src/queue/schedules/periodic.ts";
import { createCellSums } from "../src/rounds/gaps/cells-store.ts";
import { createNoticeRefresh, refreshStalledNotices } from "../src/rounds/notices/notices-store.ts";
import { syncProofAlerts } from "../src/rounds/proofs/proof-alerts-store.ts";
import { findPaymentAppProblems } from "../src/topups/binance-pay/problem-store.ts";
import { findUsdtProblems } from "../src/topups/usdt/problem-store.ts";
import { findUsageBehind } from "../src/usage/days-store.ts";

/** Work that stays undone for so long is a problem; a worker that starts catches up within seconds. */
const BEHIND_SECONDS = 20;
/** Longer than the first polls of all houses take after a start. */
const UNPOLLED_SECONDS = 60;

/** Below the ten seconds of the leader's lease: a slow task fails, and its leader stays and runs the others. */
const TIMEOUT_SECONDS = 7;
const EVERY_TICK = { intervalSeconds: 5, timeoutSeconds: TIMEOUT_SECONDS };

/** Lists the periodic tasks, for one leadership of a worker process: some remember since when a problem lasts. */
export function listPeriodicTasks(): PeriodicTask[] {
  return [...noticeTasks(), ...alertTasks(), ...behindTasks(), ...pollTasks()];
}

function noticeTasks(): PeriodicTask[] {
  const sumRounds = createCellSums();
  const refreshNotices = createNoticeRefresh();
  return [
    {
      name: "refresh-notices",
      purpose: "ends notices whose causes expired, and what a process left to do before it ended",
      intervalSeconds: 20,
      timeoutSeconds: TIMEOUT_SECONDS,
      run: async ({ sql, published }) => notify(published, await refreshNotices(sql)),
    },
    {
      ...EVERY_TICK,
      name: "refresh-stalled-notices",
      purpose: "opens and ends the notices of tables without new rounds",
      run: async ({ sql, settings, published }) =>
        notify(published, await refreshStalledNotices(sql, settings.LIVE_WINDOW_SECONDS)),
    },
    {
      ...EVERY_TICK,
      name: "sum-round-cells",
      purpose: "counts rounds by five minutes for the freshness map, at most an hour per run",
      run: ({ sql }) => sumRounds(sql),
    },
    {
      name: "note-uptime",
      purpose: "notes the minutes in which polling, scheduling and parsing work, for the status page",
      intervalSeconds: 20,
      timeoutSeconds: TIMEOUT_SECONDS,
      run: ({ sql }) => noteWorkUptime(sql),
    },
  ];
}

function alertTasks(): PeriodicTask[] {
  return [
    {
      ...EVERY_TICK,
      name: "alert-proofs",
      purpose: "alerts on proofs that fail",
      run: ({ sql, log }) => syncProofAlerts(sql, log),
    },
    {
      ...EVERY_TICK,
      name: "alert-offline-houses",
      purpose: "alerts on houses that cannot be polled",
      run: async ({ sql, log, settings }) =>
        syncAlerts(sql, log, "house_offline", await findOfflineHouses(sql, settings.LIVE_WINDOW_SECONDS)),
    },
    {
      ...EVERY_TICK,
      name: "alert-unreadable-tables",
      purpose: "alerts on tables whose responses cannot be read",
      run: async ({ sql, log }) => syncAlerts(sql, log, "responses_unreadable", await findUnreadableTables(sql)),
    },
    {
      ...EVERY_TICK,
      name: "alert-usdt",
      purpose: "alerts on chain endpoints that fail and deposits that wait",
      run: async ({ sql, log, settings }) =>
        syncAlerts(sql, log, "usdt", await findUsdtProblems(sql, usdtOf(settings))),
    },
    {
      ...EVERY_TICK,
      name: "alert-payment-app",
      purpose: "alerts on a payment app that fails and orders that wait",
      run: async ({ sql, log, settings }) =>
        syncAlerts(sql, log, "payment-app", await findPaymentAppProblems(sql, binancePayOf(settings) !== null)),
    },
    {
      ...EVERY_TICK,
      name: "alert-usage",
      purpose: "alerts if calls are not summed by day",
      run: async ({ sql, log }) => syncAlerts(sql, log, "usage_behind", await findUsageBehind(sql)),
    },
    {
      name: "close-alerts",
      purpose: "closes alerts of tables that were disabled and of services that are not configured any more",
      intervalSeconds: 20,
      timeoutSeconds: TIMEOUT_SECONDS,
      run: closeAlertsWithoutCause,
    },
  ];
}

async function closeAlertsWithoutCause({ sql, log, settings }: PeriodicContext): Promise<void> {
  const unusedKinds: string[] = [];
  if (settings.SMTP_URL === undefined) {
    unusedKinds.push("mail_server", "mail_refused", "mail_late");
    await clearSendFailure(sql);
  }
  if (settings.STAFF_WEBHOOK_URL === undefined) {
    unusedKinds.push("staff_webhook");
    await clearPostFailure(sql);
  }
  await closeEndedAlerts(sql, log, unusedKinds);
}

function behindTasks(): PeriodicTask[] {
  const [lastingBacklog, lastingLog] = [createLasting(BEHIND_SECONDS), createLasting(BEHIND_SECONDS)];
  return [
    {
      ...EVERY_TICK,
      name: "alert-backlog",
      purpose: "alerts on responses that stay unread",
      run: async ({ sql, log }) => syncAlerts(sql, log, "backlog", lastingBacklog(await findUnreadBacklog(sql))),
    },
    {
      ...EVERY_TICK,
      name: "alert-log",
      purpose: "alerts on tables that are missing in the transparency log",
      run: async ({ sql, log }) => syncAlerts(sql, log, "log_behind", lastingLog(await findLogBehind(sql))),
    },
  ];
}

function pollTasks(): PeriodicTask[] {
  const lastingLate = createLasting(UNPOLLED_SECONDS);
  return [
    {
      name: "alert-polls",
      purpose: "alerts on houses that are due and not polled, and on those that our limits hold",
      intervalSeconds: 20,
      timeoutSeconds: TIMEOUT_SECONDS,
      run: async ({ sql, log }) => {
        const { late } = await findLatePolls(sql);
        const unpolled = lastingLate(late.map((house) => ({ subject: house, text: unpolledText(house) })));
        await syncAlerts(sql, log, "not_polled", [...unpolled, ...(await listHeldHouses(sql))]);
      },
    },
    {
      name: "bring-back-times",
      purpose: "sets back waits, leases and times of newest rounds that a clock that was ahead left in the future",
      intervalSeconds: 20,
      timeoutSeconds: TIMEOUT_SECONDS,
      run: async ({ sql, log }) => {
        const changed = await bringBackTimes(sql);
        if (changed > 0) log.warn({ changed }, "times that are too far ahead were set to now");
      },
    },
    {
      name: "alert-partitions",
      purpose: "makes missing partitions of today and tomorrow, and alerts if it cannot",
      intervalSeconds: 20,
      timeoutSeconds: TIMEOUT_SECONDS,
      run: async ({ sql, log }) => {
        const { missing, reason } = await makeMissingPartitions(sql);
        await syncAlerts(
          sql,
          log,
          "partitions",
          missing.map((name) => ({ subject: name, text: partitionText(name, reason) })),
        );
      },
    },
  ];
}

function unpolledText(house: string): string {
  return `the house ${house} is due and not polled; see whether a worker takes the queue poll-house (\`roundhouse queue list\`)`;
}

function partitionText(name: string, reason: string): string {
  return `the partition ${name} is missing, so nothing can be stored on its day, and a worker cannot create it (${reason}); run \`roundhouse migrate\``;
}

function notify(published: PeriodicContext["published"], changed: readonly number[]): void {
  if (changed.length > 0) published(changed);
}
