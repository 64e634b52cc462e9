import { boardActions, boardMounts, boardPages } from "./board/lists.ts";
import type { OpsAction, OpsMount, OpsPage } from "./contract.ts";
import { dataActions, dataPages } from "./data.ts";
import { evidenceActions, evidencePages } from "./evidence.ts";

/** Every page at `/ops`. */
export const pages: readonly OpsPage[] = [...boardPages, ...evidencePages, ...dataPages];

/** Every action at `/ops`. */
export const actions: readonly OpsAction[] = [...boardActions, ...evidenceActions, ...dataActions];

/** What others made and we show. */
export const mounts: readonly OpsMount[] = [...boardMounts];
