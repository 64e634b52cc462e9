import { findHeartbeat } from "../../queue/runs/inspect.ts";
import { opsPage } from "../contract.ts";

/** The periodic tasks of the leading worker: their intervals and last runs. */
export const tasksPage = opsPage({
  path: "/queues/tasks",
  async show({ sql }) {
    const heartbeat = await findHeartbeat(sql);
    return {
      template: "queues/tasks",
      title: "Periodic tasks",
      refreshSeconds: 5,
      header: { lead: "What the leading worker runs by the clock, also while Redis is unavailable." },
      crumbs: [{ label: "Queues", href: "/ops/queues" }],
      data: { tasks: heartbeat?.tasks ?? [], leader: heartbeat?.leader ?? null },
    };
  },
});
