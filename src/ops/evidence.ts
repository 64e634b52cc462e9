import { conflictPage, conflictsPage, decideConflictAction } from "./conflicts/conflicts.ts";
import { reviseAction, revisePage } from "./conflicts/revise.ts";
import { decideSelectedAction, decideSelectedPage } from "./conflicts/decide-selected.ts";
import type { OpsAction, OpsPage } from "./contract.ts";
import { closeGapAction, gapsPage, openGapAction } from "./gaps/gaps.ts";
import { endNoticeAction, noticesPage, writeNoticeAction } from "./notices/notices.ts";
import { payloadFile, payloadPage, payloadsPage } from "./payloads/pages.ts";
import { rereadAction, rereadPage } from "./payloads/reread.ts";
import { decideItemsAction, itemPage, quarantinePage } from "./quarantine/quarantine.ts";

/** Looking at what houses sent and what was made of it. */
export const evidencePages = [
  payloadsPage,
  rereadPage,
  payloadPage,
  payloadFile,
  quarantinePage,
  itemPage,
  conflictsPage,
  revisePage,
  decideSelectedPage,
  conflictPage,
  gapsPage,
  noticesPage,
] as readonly OpsPage[];

/** Deciding on it. */
export const evidenceActions = [
  rereadAction,
  decideItemsAction,
  decideConflictAction,
  decideSelectedAction,
  reviseAction,
  closeGapAction,
  openGapAction,
  writeNoticeAction,
  endNoticeAction,
] as readonly OpsAction[];
