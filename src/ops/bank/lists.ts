import type { OpsAction, OpsPage } from "../contract.ts";
import { entryAction, entryPage } from "./entry.ts";
import { approveReturnAction, askReturnAction, holdAction, stopReturnAction } from "./holds.ts";
import { importLookPage, importPage, lookAction, takeAction } from "./imports.ts";
import { linePage } from "./line.ts";
import { approveAction, matchAction, rejectAction, takeBackAction } from "./matches.ts";
import { bankPage } from "./queue.ts";

/** The bank desk: what statements say, and what two people make of it. */
export const bankPages = [bankPage, entryPage, importPage, importLookPage, linePage] as readonly OpsPage[];

/** What is done there. */
export const bankActions = [
  entryAction,
  lookAction,
  takeAction,
  matchAction,
  approveAction,
  takeBackAction,
  rejectAction,
  holdAction,
  askReturnAction,
  approveReturnAction,
  stopReturnAction,
] as readonly OpsAction[];
