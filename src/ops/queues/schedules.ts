import { z } from "zod";
import { listSchedules } from "../../queue/runs/inspect.ts";
import { opsPage } from "../contract.ts";
import { orUnavailable, queuesProblem } from "./access.ts";
import { listLastPolls } from "./last-polls-store.ts";

const PER_PAGE = 50;
/** A later start counts as late; ticks of a busy queue can start seconds after their time. */
export const LATE_MS = 5_000;

const query = z.object({
  q: z.string().trim().max(100).default(""),
  page: z.coerce.number().int().min(1).max(100_000).default(1),
});

/** The next start of every schedule, and how late it is. */
export const schedulesPage = opsPage({
  path: "/queues/schedules",
  query,
  async show(parts, { query: asked }) {
    const { sql, queues } = parts;
    const problem = queuesProblem(parts);
    const all = queues === null || problem !== null ? [] : await orUnavailable(listSchedules(queues, Date.now()));
    const polls = new Map((await listLastPolls(sql)).map((poll) => [poll.key, poll]));
    const found = all.filter(({ queue, key }) => `${queue} ${key}`.includes(asked.q));
    const rows = found.slice((asked.page - 1) * PER_PAGE, asked.page * PER_PAGE);
    return {
      template: "queues/schedules",
      title: "Schedules",
      header: {
        lead: "When each repeated run starts next, latest first. Schedules are derived from PostgreSQL every 5 s.",
      },
      data: {
        problem,
        query: asked,
        rows: rows.map((one) => ({ ...one, poll: one.queue === "poll-house" ? (polls.get(one.key) ?? null) : null })),
        total: found.length,
        perPage: PER_PAGE,
        lateMs: LATE_MS,
      },
      refreshSeconds: 5,
      crumbs: [{ label: "Queues", href: "/ops/queues" }],
    };
  },
});
