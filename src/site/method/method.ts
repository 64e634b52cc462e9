import { findNewestCheckpoint, listLogs } from "../../record/log/log-store.ts";
import { verifierKeyText } from "../../signed-note.ts";
import { keyOf } from "../../record/log/verify-log.ts";
import type { Transaction } from "../../db/client.ts";
import type { SitePage } from "../send-page.ts";

/** The public log as the page shows it; `logs` is empty until the first worker starts it. */
export interface ShownLog {
  /** Newest first. */
  logs: { origin: string; key: string; size: number; declaredAt: string; reason: string | null }[];
  /** The newest checkpoint of the newest log; null before the first. */
  checkpoint: { size: number; note: string; signedAt: string; cosignedAt: string | null } | null;
}

/** Reads the log's facts for the page. */
export async function readShownLog(tx: Transaction): Promise<ShownLog> {
  const logs = await listLogs(tx);
  const [newest] = logs;
  return {
    logs: logs.map((log) => ({ ...log, key: verifierKeyText(keyOf(log)) })),
    checkpoint: newest === undefined ? null : await findNewestCheckpoint(tx, newest.id),
  };
}

/** The page about how forecasts are scored and how anyone can verify it; without the log if it could not be loaded. */
export function methodPage(publicLog: ShownLog | null): SitePage {
  return {
    path: "/method",
    template: "method/method",
    kind: "reading",
    title: "How we measure, and how to check it",
    description:
      "How Roundhouse pre-registers forecasts, scores every one of them, chains them by hash, publishes a signed log, and how anyone checks all of it. Also what cannot be proven.",
    data: { publicLog },
  };
}
