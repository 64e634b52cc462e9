import { z } from "zod";
import { allFailed, type FailedRun, groupFailures, groupOf, type Queues } from "../../queue/inspect.ts";
import type { OpsPage, OpsParts } from "../contract.ts";
import { PageError } from "../../frame/errors.ts";
import { excerptOf } from "../payloads/listing.ts";
import { askRedis, troubleOf } from "./queues.ts";

const PER_PAGE = 50;
/** Runs that a confirmation names one by one. */
const NAMED = 20;

const query = z.object({
  group: z.string().max(300).default(""),
  page: z.coerce.number().int().min(1).max(1_000).default(1),
});

/** The failed runs of a queue, by reason. */
export const failedPage: OpsPage<z.infer<typeof query>> = {
  path: "/queues/:queue/failed",
  query,
  async show(parts, { params, query: asked }) {
    const queue = params["queue"] ?? "";
    if (parts.queues !== null && !hasQueue(parts.queues, queue)) return null;
    const trouble = troubleOf(parts);
    const failed = parts.queues === null || trouble !== null ? [] : await askRedis(allFailed(parts.queues, queue));
    const chosen = failed.filter((run) => asked.group === "" || groupOf(run.reason) === asked.group);
    const data = {
      queue,
      trouble,
      groups: groupFailures(failed),
      rows: chosen.slice((asked.page - 1) * PER_PAGE, asked.page * PER_PAGE).map(shownRun),
      total: chosen.length,
      perPage: PER_PAGE,
      query: asked,
    };
    return {
      template: "queues/failed",
      title: `Failed runs of ${queue}`,
      data,
      refreshSeconds: 10,
      crumbs: [{ label: "Queues", href: "/ops/queues" }],
    };
  },
};

const many = z
  .union([z.string(), z.array(z.string())])
  .default([])
  .transform((given) => [given].flat())
  .pipe(z.array(z.string().max(200)).max(1_000));

const bulkQuery = z.object({
  do: z.enum(["retry", "discard"]),
  group: z.string().max(300).default(""),
  run: many,
  all: z.enum(["", "1"]).default(""),
});

/** Says how many failed runs, and which, an action would take, before it is done: those that were ticked, or all of a reason. */
export const bulkPage: OpsPage<z.infer<typeof bulkQuery>> = {
  path: "/queues/:queue/bulk",
  query: bulkQuery,
  async show(parts, { params, query: asked }) {
    const queue = params["queue"] ?? "";
    const queues = requireQueues(parts);
    if (!hasQueue(queues, queue)) return null;
    const tokens = new Set(asked.run);
    const chosen = (await askRedis(allFailed(queues, queue))).filter((run) => {
      if (asked.all !== "1") return tokens.has(run.token);
      return asked.group === "" || groupOf(run.reason) === asked.group;
    });
    const reasons = groupFailures(chosen);
    const data = {
      queue,
      act: asked.do,
      runs: chosen.length,
      gone: asked.all === "1" ? 0 : tokens.size - chosen.length,
      reasons,
      named: chosen.slice(0, NAMED).map(shownRun),
      tokens: chosen.map(({ token }) => token),
    };
    return {
      template: "queues/bulk",
      title: `${asked.do === "retry" ? "Retry" : "Discard"} failed runs of ${queue}`,
      data,
      crumbs: [
        { label: "Queues", href: "/ops/queues" },
        { label: `Failed runs of ${queue}`, href: `/ops/queues/${queue}/failed` },
      ],
    };
  },
};

/** Whether there is a queue of this name. */
export function hasQueue(queues: Queues, queue: string): boolean {
  return queues.jobs.some(({ name }) => name === queue);
}

/**
 * The queues, where they can be acted on now.
 * @throws PageError 503 where they cannot.
 */
export function requireQueues(parts: OpsParts): Queues {
  const trouble = troubleOf(parts);
  if (parts.queues === null || trouble !== null) throw new PageError(503, trouble ?? "there are no queues");
  return parts.queues;
}

function shownRun(run: FailedRun) {
  return { ...run, payload: excerptOf(JSON.stringify(run.payload)), reason: excerptOf(run.reason) };
}
