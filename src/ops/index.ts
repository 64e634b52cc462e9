import { accuracyDetailFile, accuracyDetailPage } from "./accuracy/detail.ts";
import { accuracyFile, accuracyPage } from "./accuracy/list.ts";
import { alertsPage, endSnoozeAction, snoozeAction } from "./alerts/alerts.ts";
import { auditPages } from "./audit/pages.ts";
import { addLineAction, bankEntryPage } from "./bank/entry.ts";
import { approveReturnAction, holdLineAction, requestReturnAction, stopReturnAction } from "./bank/holds.ts";
import { bankImportPage, bankImportPreviewPage, previewImportAction, runImportAction } from "./bank/imports.ts";
import { bankLinePage } from "./bank/line.ts";
import { approveMatchAction, matchLineAction, rejectMatchAction, takeBackMatchAction } from "./bank/matches.ts";
import { bankPage } from "./bank/queue.ts";
import { boardPage } from "./board/board.ts";
import { batchPage } from "./calibrations/batch.ts";
import { compareCalibrationsAction, compareCalibrationsPage } from "./calibrations/compare.ts";
import { labelRunAction } from "./calibrations/labels.ts";
import { calibrationsPage, runsPage } from "./calibrations/list.ts";
import { promoteCalibrationAction, promoteCalibrationPage } from "./calibrations/promote.ts";
import { calibrationPage } from "./calibrations/record.ts";
import { cancelRunAction, resumeRunAction, runPage } from "./calibrations/run.ts";
import { newRunPage, startRunAction } from "./calibrations/start.ts";
import {
  resetTwoFactorAction,
  restoreAccountAction,
  revokeKeyAction,
  suspendAccountAction,
} from "./callers/actions.ts";
import { callerPage, callersPage } from "./callers/callers.ts";
import { conflictPage, conflictsPage, decideConflictAction } from "./conflicts/conflicts.ts";
import { decideConflictsAction, decideConflictsPage } from "./conflicts/decide-selected.ts";
import { reviseRoundAction, reviseRoundPage } from "./conflicts/revise.ts";
import { type OpsAction, type OpsPage } from "./contract.ts";
import { depositAddressesPage, depositsPage, readDepositsAgainAction } from "./deposits/deposits.ts";
import { closeGapAction, gapsPage, openGapAction } from "./gaps/gaps.ts";
import {
  closeCircuitAction,
  pauseHouseAction,
  probeHouseAction,
  resetNewestAction,
  resumeHouseAction,
} from "./houses/actions.ts";
import { houseActPage, housePage } from "./houses/house.ts";
import { tablePage } from "./houses/table.ts";
import { approveReversalAction, declineReversalAction, proposeReversalAction } from "./ledger/actions.ts";
import { ledgerPage, transactionPage, walletsPage } from "./ledger/pages.ts";
import { mailPage, mailsPage } from "./mails/mails.ts";
import { retryAllMailsAction, retryMailsAction } from "./mails/retry.ts";
import { endNoticeAction, noticesPage, writeNoticeAction } from "./notices/notices.ts";
import { payloadFile, payloadPage, payloadsPage } from "./payloads/pages.ts";
import { rereadAction, rereadPage } from "./payloads/reread.ts";
import { checkOrderAction, ordersPage } from "./payment-app/orders.ts";
import { peopleActions, peoplePages } from "./people/people.ts";
import { setPlanAction } from "./plans/actions.ts";
import { planPage, planPreviewPage, plansPage } from "./plans/plans.ts";
import { decideItemsAction, itemPage, quarantinePage } from "./quarantine/quarantine.ts";
import { overviewPage } from "./queues/overview.ts";
import { pauseQueueAction, pauseQueuePage, resumeQueueAction, resumeQueuePage } from "./queues/pause.ts";
import { queuePage } from "./queues/queue.ts";
import {
  discardRunsAction,
  discardRunsPage,
  promoteRunsAction,
  promoteRunsPage,
  retryRunsAction,
  retryRunsPage,
} from "./queues/run-actions.ts";
import { queueRunPage } from "./queues/run.ts";
import { schedulesPage } from "./queues/schedules.ts";
import { tasksPage } from "./queues/tasks.ts";
import { searchPage } from "./search/search.ts";
import { settingsPage } from "./settings/settings.ts";
import { styleguidePage } from "./styleguide/styleguide.ts";
import { topupPage } from "./topups/topup.ts";
import { workersPage } from "./workers/workers.ts";

/** Every page at `/ops`. */
export const pages: readonly OpsPage[] = [
  boardPage,
  alertsPage,
  housePage,
  houseActPage,
  tablePage,
  overviewPage,
  pauseQueuePage,
  resumeQueuePage,
  queuePage,
  retryRunsPage,
  promoteRunsPage,
  discardRunsPage,
  queueRunPage,
  schedulesPage,
  tasksPage,
  workersPage,
  payloadsPage,
  payloadPage,
  payloadFile,
  rereadPage,
  quarantinePage,
  itemPage,
  conflictsPage,
  conflictPage,
  decideConflictsPage,
  reviseRoundPage,
  gapsPage,
  noticesPage,
  batchPage,
  compareCalibrationsPage,
  calibrationsPage,
  runsPage,
  promoteCalibrationPage,
  calibrationPage,
  runPage,
  newRunPage,
  accuracyDetailPage,
  accuracyDetailFile,
  accuracyPage,
  accuracyFile,
  callersPage,
  callerPage,
  ledgerPage,
  walletsPage,
  transactionPage,
  ordersPage,
  bankEntryPage,
  bankImportPage,
  bankImportPreviewPage,
  bankLinePage,
  bankPage,
  depositsPage,
  depositAddressesPage,
  topupPage,
  plansPage,
  planPage,
  planPreviewPage,
  mailsPage,
  mailPage,
  searchPage,
  settingsPage,
  styleguidePage,
  ...peoplePages,
  ...auditPages,
];

/** Every action at `/ops`. */
export const actions: readonly OpsAction[] = [
  snoozeAction,
  endSnoozeAction,
  pauseHouseAction,
  resumeHouseAction,
  probeHouseAction,
  closeCircuitAction,
  resetNewestAction,
  pauseQueueAction,
  resumeQueueAction,
  retryRunsAction,
  promoteRunsAction,
  discardRunsAction,
  rereadAction,
  decideItemsAction,
  decideConflictAction,
  decideConflictsAction,
  reviseRoundAction,
  closeGapAction,
  openGapAction,
  writeNoticeAction,
  endNoticeAction,
  compareCalibrationsAction,
  labelRunAction,
  promoteCalibrationAction,
  cancelRunAction,
  resumeRunAction,
  startRunAction,
  suspendAccountAction,
  restoreAccountAction,
  resetTwoFactorAction,
  revokeKeyAction,
  proposeReversalAction,
  approveReversalAction,
  declineReversalAction,
  checkOrderAction,
  addLineAction,
  holdLineAction,
  requestReturnAction,
  approveReturnAction,
  stopReturnAction,
  previewImportAction,
  runImportAction,
  matchLineAction,
  approveMatchAction,
  takeBackMatchAction,
  rejectMatchAction,
  readDepositsAgainAction,
  setPlanAction,
  retryMailsAction,
  retryAllMailsAction,
  ...peopleActions,
];
