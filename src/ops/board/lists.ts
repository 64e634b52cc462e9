import { alertsPage, endSnoozeAction, snoozeAction } from "../alerts/alerts.ts";
import type { OpsAction, OpsPage } from "../contract.ts";
import {
  closeCircuitAction,
  resetNewestAction,
  pauseHouseAction,
  probeHouseAction,
  resumeHouseAction,
} from "../houses/actions.ts";
import { houseActPage, housePage } from "../houses/house.ts";
import { tablePage } from "../houses/table.ts";
import { queueActions, queuePages } from "../queues/lists.ts";
import { workersPage } from "../workers/workers.ts";
import { boardPage } from "./board.ts";

/** Looking at what runs now. */
export const boardPages = [
  boardPage,
  alertsPage,
  housePage,
  houseActPage,
  tablePage,
  ...queuePages,
  workersPage,
] as readonly OpsPage[];

/** Acting on it. */
export const boardActions = [
  snoozeAction,
  endSnoozeAction,
  pauseHouseAction,
  resumeHouseAction,
  probeHouseAction,
  closeCircuitAction,
  resetNewestAction,
  ...queueActions,
] as readonly OpsAction[];
