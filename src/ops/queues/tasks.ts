import { z } from "zod";
import { findHeartbeat } from "../../queue/runs/inspect.ts";
import type { OpsPage } from "../contract.ts";

const nothing = z.object({});

/** The periodic tasks of the leading worker: their intervals and last runs. */
export const tasksPage: OpsPage<z.infer<typeof nothing>> = {
  path: "/queues/tasks",
  query: nothing,
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
};
