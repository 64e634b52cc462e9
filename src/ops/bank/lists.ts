import type { OpsAction, OpsPage } from "../contract.ts";
import { entryAction, entryPage } from "./entry.ts";
import { approveReturnAction, requestReturnAction, holdAction, stopReturnAction } from "./holds.ts";
import { importAction, importPage, importPreviewPage, previewAction } from "./imports.ts";
import { linePage } from "./line.ts";
import { approveAction, matchAction, rejectAction, takeBackAction } from "./matches.ts";
import { bankPage } from "./queue.ts";

/** Bank transfers: statements, matches with top-ups, and approvals. */
export const bankPages = [bankPage, entryPage, importPage, importPreviewPage, linePage] as readonly OpsPage[];

/** The actions on bank transfers. */
export const bankActions = [
  entryAction,
  previewAction,
  importAction,
  matchAction,
  approveAction,
  takeBackAction,
  rejectAction,
  holdAction,
  requestReturnAction,
  approveReturnAction,
  stopReturnAction,
] as readonly OpsAction[];
