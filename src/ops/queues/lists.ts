import type { OpsAction, OpsPage } from "../contract.ts";
import { overviewPage } from "./overview.ts";
import { pauseAction, pausePage, resumeAction, resumePage } from "./pause.ts";
import { queuePage } from "./queue.ts";
import { discardAction, discardPage, promoteAction, promotePage, retryAction, retryPage } from "./run-actions.ts";
import { runPage } from "./run.ts";
import { schedulesPage } from "./schedules.ts";
import { tasksPage } from "./tasks.ts";

/** The pages about queues. */
export const queuePages = [
  overviewPage,
  schedulesPage,
  tasksPage,
  queuePage,
  runPage,
  pausePage,
  resumePage,
  retryPage,
  promotePage,
  discardPage,
] as readonly OpsPage[];

/** The actions on queues. */
export const queueActions = [
  pauseAction,
  resumeAction,
  retryAction,
  promoteAction,
  discardAction,
] as readonly OpsAction[];
