import type { Job } from "../src/queue/job.ts";
import backfillGap from "./backfill-gap.ts";
import calibrateTable from "./calibrate-table.ts";
import compareCalibrations from "./compare-calibrations.ts";
import housekeep from "./housekeep.ts";
import normalizeRounds from "./normalize-rounds.ts";
import pollHouse from "./poll-house.ts";
import postAlerts from "./post-alerts.ts";
import publishLog from "./publish-log.ts";
import remindHolders from "./remind-holders.ts";
import replayRange from "./replay-range.ts";
import rollUpUsage from "./roll-up-usage.ts";
import scoreAccuracy from "./score-accuracy.ts";
import sendMail from "./send-mail.ts";
import settleTopups from "./settle-topups.ts";
import watchDeposits from "./watch-deposits.ts";

/** Every kind of work, in the order in which a round goes through it. */
export const jobs: readonly Job<unknown>[] = [
  pollHouse,
  normalizeRounds,
  backfillGap,
  scoreAccuracy,
  calibrateTable,
  replayRange,
  compareCalibrations,
  publishLog,
  rollUpUsage,
  watchDeposits,
  settleTopups,
  remindHolders,
  sendMail,
  postAlerts,
  housekeep,
];
