import type { OpsAction, OpsMount, OpsPage } from "../contract.ts";
import {
  closeCircuitAction,
  resetNewestAction,
  pauseHouseAction,
  probeHouseAction,
  resumeHouseAction,
} from "../houses/actions.ts";
import { houseActPage, housePage } from "../houses/house.ts";
import { tablePage } from "../houses/table.ts";
import { controlPage, discardAction, pauseAction, resumeAction, retryAction } from "../queues/actions.ts";
import { bullMount } from "../queues/bull.ts";
import { bulkPage, failedPage } from "../queues/failed.ts";
import { queuesPage, schedulesPage } from "../queues/queues.ts";
import { workersPage } from "../workers/workers.ts";
import { boardPage } from "./board.ts";

/** Looking at what runs now. */
export const boardPages = [
  boardPage,
  housePage,
  houseActPage,
  tablePage,
  queuesPage,
  schedulesPage,
  failedPage,
  bulkPage,
  controlPage,
  workersPage,
] as readonly OpsPage[];

/** Acting on it. */
export const boardActions = [
  pauseHouseAction,
  resumeHouseAction,
  probeHouseAction,
  closeCircuitAction,
  resetNewestAction,
  pauseAction,
  resumeAction,
  retryAction,
  discardAction,
] as readonly OpsAction[];

/** Looking deeper into the queues. */
export const boardMounts: readonly OpsMount[] = [bullMount];
