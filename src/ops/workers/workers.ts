import { findHeartbeat, listWorkers } from "../../queue/runs/inspect.ts";
import { readAlerts } from "../board/open-store.ts";
import { opsPage } from "../contract.ts";

/** Processes report every five seconds. */
const SILENT_SECONDS = 20;

/** The processes that do the work, the one that leads, and the alerts that are open. */
export const workersPage = opsPage({
  path: "/workers",
  nav: { label: "Workers", order: 12, group: "Live" },
  async show({ sql }) {
    const [workers, heartbeat, alerts] = await Promise.all([listWorkers(sql), findHeartbeat(sql), readAlerts(sql)]);
    const now = Date.now();
    const rows = workers.map((worker) => ({
      ...worker,
      isSilent: now - worker.seenAt.getTime() > SILENT_SECONDS * 1_000,
    }));
    const versions = new Set(workers.map(({ version }) => version));
    const data = { rows, heartbeat, alerts, versions: [...versions], now };
    return { template: "workers/workers", title: "Workers", data, refreshSeconds: 5 };
  },
});
