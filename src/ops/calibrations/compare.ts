import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import { sideOf } from "../../calibration/calibration-view.ts";
import { findCalibration, type WholeCalibration } from "../../calibration/calibration-store.ts";
import { commonRange, comparedOf, type Comparison } from "../../calibration/compare.ts";
import { requestComparison, type RequestedComparison, findComparison } from "../../calibration/comparison-store.ts";
import { findLiveRecord } from "../../calibration/runs/live-record-store.ts";
import { betterOf, pairOf, readPaired } from "../../calibration/requested-comparison.ts";
import { findLabels } from "../../calibration/runs/run-list-store.ts";
import { fullWidth } from "../../charts/draw.ts";
import { reliabilityPlot } from "../../charts/reliability.ts";
import { skillPlot } from "../../charts/skill.ts";
import type { Queryable } from "../../db/client.ts";
import { UsageError } from "../../errors.ts";
import { type Figure, figureOf } from "../../frame/figure.ts";
import { BIN_COLUMNS, binRow, pointOf } from "../../frame/text/accuracy-format.ts";
import { type ComparedSide, compareWindows, metricRows } from "../../frame/text/calibration-format.ts";
import type { Log } from "../../log.ts";
import { auditEntry } from "../audit-entry.ts";
import { opsAction, opsPage } from "../contract.ts";
import { idsOf } from "../payloads/listing.ts";
import { MOST_COMPARED, SKILL_COLUMNS, skillsOf } from "./compare-view.ts";
import { CALIBRATIONS } from "./run-view.ts";

const query = z.object({
  id: idsOf(MOST_COMPARED, "select at least two calibrations").refine(
    (ids) => ids.length >= 2,
    "select at least two calibrations",
  ),
});

/** Calibrations side by side, and their paired differences from the first once a worker has computed them. */
export const compareCalibrationsPage = opsPage({
  path: "/calibrations/compare",
  query,
  async show({ sql, log }, { query: { id: ids } }) {
    const rows = await findAll(sql, ids);
    const [first, ...others] = rows ?? [];
    if (rows === null || first === undefined) return null;
    const names = rows.map(({ id }) => id);
    const [labels, live] = await Promise.all([findLabels(sql, names), liveOf(sql, rows)]);
    const sides = rows.map((row) => ({ ...sideOf(comparedOf(row)), table: row.table }));
    const pairs = await Promise.all(others.map((other) => pairView(sql, first, other)));
    const isOneTable = new Set(rows.map(({ tableId }) => tableId)).size === 1;
    const data = {
      sides: sides.map((side) => ({ ...side, isLive: live.has(side.id), labels: labels.get(side.id) ?? null })),
      linkOf: (at: number) => linkTo([names[at] ?? "", ...names.filter((_, i) => i !== at)]),
      metrics: metricRows(sides),
      windows: { columns: ["Window", ...names.map((id) => `Calibration ${id}`)], rows: compareWindows(sides) },
      isOneTable,
      haveOneRange: new Set(rows.map(({ beginSeq, toSeq }) => `${beginSeq} ${toSeq}`)).size === 1,
      pairs,
      canRequest: pairs.some(({ problem, status }) => problem === null && (status === null || status === "failed")),
      figures: await figuresOf(log, sides),
    };
    const crumbs = [{ label: "Calibrations", href: CALIBRATIONS }];
    const isOpen = pairs.some(({ status }) => status === "queued" || status === "running");
    const refresh = isOpen ? { refreshSeconds: 2 } : {};
    const title = `Calibrations ${listOf(names)}`;
    return { template: "calibrations/compare", title, data, crumbs, ...refresh };
  },
});

/** The records in the order of their ids; null if one is missing. */
async function findAll(sql: Queryable, ids: readonly bigint[]): Promise<WholeCalibration[] | null> {
  const rows = await Promise.all(ids.map((id) => findCalibration(sql, String(id))));
  const found = rows.filter((row) => row !== null);
  return found.length === rows.length ? found : null;
}

async function liveOf(sql: Queryable, rows: readonly WholeCalibration[]): Promise<Set<string>> {
  const tables = [...new Set(rows.map(({ tableId }) => tableId))];
  const records = await Promise.all(tables.map((tableId) => findLiveRecord(sql, tableId)));
  return new Set(records.flatMap((record) => record?.id ?? []));
}

function figuresOf(log: Log, sides: readonly ComparedSide[]): Promise<Figure[]> {
  const { points, rows } = skillsOf(sides);
  return Promise.all([
    figureOf(log, fullWidth(skillPlot("Skill of each calibration", points)), { columns: SKILL_COLUMNS, rows }),
    figureOf(
      log,
      fullWidth(
        reliabilityPlot(
          "Reliability of each calibration",
          sides.flatMap((side) => side.reliability.map((bin) => pointOf(`calibration ${side.id}`, bin))),
        ),
      ),
      {
        columns: ["Calibration", ...BIN_COLUMNS],
        rows: sides.flatMap((side) => side.reliability.map((bin) => [side.id, ...binRow(bin)])),
      },
    ),
  ]);
}

/** The paired difference of a calibration from the first; the losses and the difference are null until it is computed. */
interface PairView {
  id: string;
  /** Why the two cannot be compared round by round. */
  problem: string | null;
  /** Of the requested comparison; null if none was requested. */
  status: RequestedComparison["status"] | null;
  reason: string | null;
  askedBy: string | null;
  /** Parts per million of its rounds. */
  ppm: number;
  /** Losses in nats per round; `difference` is this one minus the first, below 0 if this one is better. */
  paired: {
    rounds: number;
    first: number;
    other: number;
    difference: number;
    interval: [number, number] | null;
  } | null;
  /** The better one; null if the interval contains 0 or nothing is computed. */
  better: string | null;
}

async function pairView(sql: Queryable, first: WholeCalibration, other: WholeCalibration): Promise<PairView> {
  const pair = pairOf(first.id, other.id);
  const found = await findComparison(sql, pair);
  const stored = found?.status === "done" ? readPaired(found.paired) : null;
  const paired = stored?.ok === true ? stored.paired : null;
  const isUnreadable = stored?.ok === false;
  return {
    id: other.id,
    problem: problemOf(first, other),
    status: isUnreadable ? "failed" : (found?.status ?? null),
    reason: isUnreadable ? stored.reason : (found?.reason ?? null),
    askedBy: found?.askedBy ?? null,
    ppm: found === null || found.of === 0n ? 0 : Number((found.done * 1_000_000n) / found.of),
    paired: paired && againstFirst(paired, pair[0] === first.id),
    better: paired && { a: pair[0], b: pair[1], none: null }[betterOf(paired) ?? "none"],
  };
}

/** A stored difference is the older record minus the newer one; here it is the other minus the first. */
function againstFirst(
  { rounds, a_log_loss, b_log_loss, difference, interval_95 }: Comparison["paired"],
  isFirstOlder: boolean,
): PairView["paired"] {
  if (!isFirstOlder) return { rounds, first: b_log_loss, other: a_log_loss, difference, interval: interval_95 };
  const interval: [number, number] | null = interval_95 && [-interval_95[1], -interval_95[0]];
  return { rounds, first: a_log_loss, other: b_log_loss, difference: -difference, interval };
}

/** Why two records cannot be compared round by round; null if they can. */
function problemOf(a: WholeCalibration, b: WholeCalibration): string | null {
  try {
    commonRange(a, b);
    return null;
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
}

/** Requests the comparison of each calibration with the first on the rounds that both cover. */
export const compareCalibrationsAction = opsAction({
  name: "calibration.compare",
  path: "/calibrations/compare",
  roles: ["data"],
  isDangerous: false,
  form: query,
  async run({ sql }, { visitor, form }) {
    const rows = await findAll(sql, form.id);
    const [first, ...others] = rows ?? [];
    if (first === undefined) return { ok: false, problem: "there is no such calibration" };
    const comparable = others.filter((other) => problemOf(first, other) === null);
    if (comparable.length === 0) {
      const problems = others.map((other) => problemOf(first, other));
      return { ok: false, problem: problems.join("; ") };
    }
    const names = form.id.map(String);
    const requested = await sql.begin(async (tx) => {
      const ids: string[] = [];
      for (const { id } of comparable) {
        const pair = pairOf(first.id, id);
        const found = await findComparison(tx, pair);
        const recompute = found?.status === "done" && !readPaired(found.paired).ok;
        if (await requestComparison(tx, pair, { by: visitor.email, recompute })) ids.push(id);
      }
      const entry = {
        action: "calibration.compare",
        target: `calibrations ${listOf(names)} of ${[...new Set(rows?.map(({ table }) => table))].join(", ")}`,
        after: { first: first.id, requested: ids },
      };
      await appendAudit(tx, auditEntry(visitor, entry));
      return ids;
    });
    const count = requested.length;
    const message =
      count === 0 ? "Already requested" : `${count === 1 ? "1 comparison" : `${count} comparisons`} queued`;
    return { ok: true, message, location: linkTo(names) };
  },
});

/** The page that compares these calibrations; differences are from the first. */
export function linkTo(ids: readonly string[]): string {
  return `${CALIBRATIONS}/compare?${ids.map((id) => `id=${id}`).join("&")}`;
}

/** Ids in a sentence: "1, 2 and 3". */
function listOf(ids: readonly string[]): string {
  return new Intl.ListFormat("en-GB").format(ids);
}
