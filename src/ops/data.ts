import { accuracyDetailFile, accuracyDetailPage } from "./accuracy/detail.ts";
import { accuracyFile, accuracyPage } from "./accuracy/list.ts";
import { batchPage } from "./calibrations/batch.ts";
import { compareAction, comparePage } from "./calibrations/compare.ts";
import { calibrationsPage, runsPage } from "./calibrations/list.ts";
import { labelAction } from "./calibrations/labels.ts";
import { promoteAction, promotePage } from "./calibrations/promote.ts";
import { recordPage } from "./calibrations/record.ts";
import { cancelAction, resumeAction, runPage } from "./calibrations/run.ts";
import { newRunPage, startAction } from "./calibrations/start.ts";
import { dropFactorAction, restoreAction, revokeAction, suspendAction } from "./callers/actions.ts";
import { callerPage, callersPage } from "./callers/callers.ts";
import type { OpsAction, OpsPage } from "./contract.ts";

/** Calibrations, accuracy and callers. */
export const dataPages = [
  calibrationsPage,
  runsPage,
  runPage,
  batchPage,
  newRunPage,
  comparePage,
  recordPage,
  promotePage,
  accuracyPage,
  accuracyFile,
  accuracyDetailPage,
  accuracyDetailFile,
  callersPage,
  callerPage,
] as readonly OpsPage[];

/** Actions on calibrations and callers. */
export const dataActions = [
  startAction,
  cancelAction,
  resumeAction,
  labelAction,
  compareAction,
  promoteAction,
  suspendAction,
  restoreAction,
  revokeAction,
  dropFactorAction,
] as readonly OpsAction[];
