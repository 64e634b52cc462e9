import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import { reliabilityPlot } from "../../charts/reliability.ts";
import type { Sql } from "../../db/client.ts";
import { UsageError } from "../../errors.ts";
import { betterOf, pairOf, readPaired } from "../../calibration/requested-comparison.ts";
import { findCalibration, type WholeCalibration } from "../../calibration/calibration-store.ts";
import { comparisonOf } from "../../calibration/calibration-view.ts";
import { commonRange, comparedOf } from "../../calibration/compare.ts";
import { askComparison, findComparison } from "../../calibration/comparison-store.ts";
import { findLiveRecord } from "../../calibration/manual-run-store.ts";
import { BIN_COLUMNS, binRow, pointOf } from "../../frame/measured.ts";
import { auditEntry } from "../audit-entry.ts";
import type { OpsAction, OpsPage } from "../contract.ts";
import { figureOf } from "../../frame/figure.ts";
import { windowRows, WINDOW_COLUMNS } from "./windows.ts";
import { LIST } from "./run-view.ts";

const id = z
  .string()
  .trim()
  .regex(/^\d{1,18}$/, "expected the number of a calibration");
const query = z.object({ a: id, b: id });

/** Two calibrations side by side, and their paired difference once a worker has made it. */
export const comparePage: OpsPage<z.infer<typeof query>> = {
  path: "/calibrations/compare",
  query,
  async show({ sql, log }, { query: asked }) {
    const [one, other] = pairOf(asked.a, asked.b);
    const [a, b] = await Promise.all([findCalibration(sql, one), findCalibration(sql, other)]);
    if (a === null || b === null) return null;
    const [found, live] = await Promise.all([findComparison(sql, [one, other]), findLiveRecord(sql, a.tableId)]);
    const kept = found?.status === "done" ? readPaired(found.paired) : null;
    const paired = kept?.ok === true ? kept.paired : null;
    const sides = comparisonOf({ table: a.table, a: comparedOf(a), b: comparedOf(b), paired: paired ?? NOTHING });
    const shown = [sides.a, sides.b];
    const figure = await figureOf(
      log,
      reliabilityPlot(
        `Reliability of calibrations ${one} and ${other}`,
        shown.flatMap((side) => side.reliability.map((bin) => pointOf(`calibration ${side.id}`, bin))),
      ),
      {
        columns: ["calibration", ...BIN_COLUMNS],
        rows: shown.flatMap((side) => side.reliability.map((bin) => [side.id, ...binRow(bin)])),
      },
    );
    const data = {
      table: a.table,
      sides: shown.map((side) => ({ ...side, windows: windowRows(side.windows), isLive: side.id === live?.id })),
      windowColumns: WINDOW_COLUMNS,
      asked: found !== null && kept?.ok === false ? { ...found, status: "failed", reason: kept.reason } : found,
      paired,
      better: paired === null ? null : { a: one, b: other, none: null }[betterOf(paired) ?? "none"],
      problem: problemOf(a, b),
      figure,
    };
    const crumbs = [{ label: "Calibrations", href: LIST }];
    const isOpen = found?.status === "queued" || found?.status === "running";
    const refresh = isOpen ? { refreshSeconds: 2 } : {};
    const title = `Calibrations ${one} and ${other}`;
    return { template: "calibrations/compare", title, data, crumbs, ...refresh };
  },
};

/** Stands for what is not made yet; it is not shown. */
const NOTHING = {
  from_seq: 0,
  to_seq: 0,
  rounds: 0,
  a_log_loss: 0,
  b_log_loss: 0,
  difference: 0,
  interval_95: null,
};

/** Why two records cannot be compared round by round; null where they can. */
function problemOf(a: WholeCalibration, b: WholeCalibration): string | null {
  if (a.id === b.id) return "expected two calibrations, got the same one twice";
  try {
    commonRange(a, b);
    return null;
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
}

/** Asks a worker to judge two calibrations on the rounds that both cover. */
export const compareAction: OpsAction<z.infer<typeof query>> = {
  name: "calibration.compare",
  path: "/calibrations/compare",
  roles: ["data"],
  isDangerous: false,
  form: query,
  async run({ sql }, { visitor, form }) {
    const pair = pairOf(form.a, form.b);
    const [a, b] = await both(sql, pair);
    if (a === null || b === null) return { ok: false, problem: "there is no such calibration" };
    const problem = problemOf(a, b);
    if (problem !== null) return { ok: false, problem };
    const isNew = await sql.begin(async (tx) => {
      const found = await findComparison(tx, pair);
      const anew = found?.status === "done" && !readPaired(found.paired).ok;
      const isAsked = await askComparison(tx, pair, { by: visitor.email, anew });
      const told = {
        action: "calibration.compare",
        target: `calibrations ${a.id} and ${b.id} of ${a.table}`,
        after: { asked: isAsked },
      };
      await appendAudit(tx, auditEntry(visitor, told));
      return isAsked;
    });
    const message = isNew ? "the comparison waits for a worker" : "this comparison was asked for already";
    return { ok: true, message, location: `${LIST}/compare?a=${a.id}&b=${b.id}` };
  },
};

async function both(sql: Sql, [a, b]: readonly [string, string]) {
  return [await findCalibration(sql, a), await findCalibration(sql, b)] as const;
}
