import { z } from "zod";
import { findCalibrationPage, LOOKED_AT, type RecordSort } from "../../calibration/calibration-list-store.ts";
import { countRuns, listRuns, listTags } from "../../calibration/runs/run-list-store.ts";
import type { PageHeader } from "../../frame/view.ts";
import { opsPage, type Visitor } from "../contract.ts";
import { choose, PER_PAGE } from "../payloads/listing.ts";
import { MOST_COMPARED } from "./compare-view.ts";
import { tagFilter } from "./labels.ts";
import { CALIBRATIONS, runView } from "./run-view.ts";

const page = z.coerce.number().int().min(1).max(100_000).default(1);
const of = z.string().trim().max(200).default("");

const records = z.object({
  of,
  kind: z.enum(["hand", "manual", "promoted", "rolling", "all"]).default("hand"),
  model: z.string().trim().max(80).default(""),
  tag: tagFilter,
  sort: z
    .enum(["id", "-id", "table", "-table", "rounds", "-rounds", "log_loss", "-log_loss", "brier", "-brier"])
    .default("-id"),
  page,
});

/** Open runs, and the calibrations that replays created. */
export const calibrationsPage = opsPage({
  path: "/calibrations",
  nav: { label: "Calibrations", order: 25, group: "Data" },
  query: records,
  async show({ sql }, { query, visitor }) {
    const { tableIds, problem } = await choose(sql, query.of);
    const tag = query.tag === "" ? null : query.tag;
    const [{ rows, total, page: shownPage }, running, queued, tags] = await Promise.all([
      findCalibrationPage(
        sql,
        {
          tableIds,
          kind: query.kind === "all" ? null : query.kind,
          model: query.model === "" ? null : query.model,
          tag,
        },
        {
          sort: query.sort.replace(/^-/, "") as RecordSort,
          isDown: query.sort.startsWith("-"),
          page: query.page,
          perPage: PER_PAGE,
        },
      ),
      listRuns(sql, { tableIds, status: "running", tag }, { limit: 20, offset: 0 }),
      listRuns(sql, { tableIds, status: "queued", tag }, { limit: 20, offset: 0 }),
      listTags(sql),
    ]);
    const open = [...running, ...queued].map(runView);
    const data = {
      rows,
      total,
      open,
      tags,
      query: { ...query, page: shownPage },
      problem,
      perPage: PER_PAGE,
      lookedAt: LOOKED_AT,
      mostCompared: MOST_COMPARED,
    };
    const header = { ...startHeader(visitor), more: [{ label: "All runs", href: `${CALIBRATIONS}/runs` }] };
    return { template: "calibrations/list", title: "Calibrations", data, header };
  },
});

/** The primary action of both lists, for staff who may take it. */
function startHeader({ role }: Visitor): PageHeader {
  return role === "data" || role === "admin" ? { action: { label: "Start run", href: `${CALIBRATIONS}/new` } } : {};
}

const runs = z.object({
  of,
  status: z.enum(["", "queued", "running", "done", "failed", "cancelled"]).default(""),
  tag: tagFilter,
  page,
});

/** Manual runs of every requester and status. */
export const runsPage = opsPage({
  path: "/calibrations/runs",
  query: runs,
  async show({ sql }, { query, visitor }) {
    const { tableIds, problem } = await choose(sql, query.of);
    const filter = {
      tableIds,
      status: query.status === "" ? null : query.status,
      tag: query.tag === "" ? null : query.tag,
    };
    const [found, total, tags] = await Promise.all([
      listRuns(sql, filter, { limit: PER_PAGE, offset: (query.page - 1) * PER_PAGE }),
      countRuns(sql, filter),
      listTags(sql),
    ]);
    const data = { rows: found.map(runView), total, tags, query, problem, perPage: PER_PAGE };
    const crumbs = [{ label: "Calibrations", href: CALIBRATIONS }];
    const header = startHeader(visitor);
    return { template: "calibrations/runs", title: "Manual runs", data, crumbs, header, refreshSeconds: 5 };
  },
});
