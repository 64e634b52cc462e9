import { z } from "zod";
import { listCalibrations, LOOKED_AT, type RecordSort } from "../../calibration/calibration-list-store.ts";
import { countRuns, listRuns } from "../../calibration/run-list-store.ts";
import type { OpsPage } from "../contract.ts";
import { choose, PER_PAGE } from "../payloads/listing.ts";
import { LIST, runView } from "./run-view.ts";

const page = z.coerce.number().int().min(1).max(100_000).default(1);
const of = z.string().trim().max(200).default("");

const records = z.object({
  of,
  kind: z.enum(["hand", "manual", "promoted", "rolling", "all"]).default("hand"),
  model: z.string().trim().max(80).default(""),
  sort: z
    .enum(["id", "-id", "table", "-table", "rounds", "-rounds", "log_loss", "-log_loss", "brier", "-brier"])
    .default("-id"),
  page,
});

/** Runs that are open, and records: what replays came to. */
export const calibrationsPage: OpsPage<z.infer<typeof records>> = {
  path: "/calibrations",
  nav: { label: "Calibrations", order: 25, group: "Data" },
  query: records,
  async show({ sql }, { query }) {
    const { tableIds, problem } = await choose(sql, query.of);
    const [{ rows, total }, running, queued] = await Promise.all([
      listCalibrations(
        sql,
        {
          tableIds,
          kind: query.kind === "all" ? null : query.kind,
          model: query.model === "" ? null : query.model,
        },
        {
          sort: query.sort.replace(/^-/, "") as RecordSort,
          isDown: query.sort.startsWith("-"),
          limit: PER_PAGE,
          offset: (query.page - 1) * PER_PAGE,
        },
      ),
      listRuns(sql, { tableIds, status: "running" }, { limit: 20, offset: 0 }),
      listRuns(sql, { tableIds, status: "queued" }, { limit: 20, offset: 0 }),
    ]);
    const open = [...running, ...queued].map(runView);
    const data = { rows, total, open, query, problem, perPage: PER_PAGE, lookedAt: LOOKED_AT };
    const refresh = open.length === 0 ? {} : { refreshSeconds: 3 };
    return { template: "calibrations/list", title: "Calibrations", data, ...refresh };
  },
};

const runs = z.object({
  of,
  status: z.enum(["", "queued", "running", "done", "failed", "cancelled"]).default(""),
  page,
});

/** Runs by hand, whoever asked for them and however they ended. */
export const runsPage: OpsPage<z.infer<typeof runs>> = {
  path: "/calibrations/runs",
  query: runs,
  async show({ sql }, { query }) {
    const { tableIds, problem } = await choose(sql, query.of);
    const filter = { tableIds, status: query.status === "" ? null : query.status };
    const [found, total] = await Promise.all([
      listRuns(sql, filter, { limit: PER_PAGE, offset: (query.page - 1) * PER_PAGE }),
      countRuns(sql, filter),
    ]);
    const data = { rows: found.map(runView), total, query, problem, perPage: PER_PAGE };
    const crumbs = [{ label: "Calibrations", href: LIST }];
    return { template: "calibrations/runs", title: "Runs by hand", data, crumbs, refreshSeconds: 5 };
  },
};
