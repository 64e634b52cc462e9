import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import { UsageError } from "../../errors.ts";
import { findCalibration, type WholeCalibration } from "../../calibration/calibration-store.ts";
import { summaryOf } from "../../calibration/calibration-view.ts";
import { findLiveRecord } from "../../calibration/runs/live-record-store.ts";
import { notLive, promoteCalibration, PromotedMeanwhile, refuseLaterPromotion } from "../../calibration/promote.ts";
import { findNewestPromotion, readTable } from "../../calibration/promotion-store.ts";
import { promotionReport } from "../../calibration/promotion-report.ts";
import { auditEntry } from "../audit-entry.ts";
import { opsAction, opsPage } from "../contract.ts";
import { PageError } from "../../frame/errors.ts";
import { idOf } from "../../frame/path-id.ts";
import { reason, tellReaders } from "../payloads/listing.ts";
import { CALIBRATIONS } from "./run-view.ts";

/** Rounds that may be rolled forward within a request: this takes seconds. */
const MOST_ROUNDS = 300_000n;
/** A chunk takes about 10 ms, since this process also serves callers. */
const ROUNDS_PER_CHUNK = 2000;

/** What a promotion would change, with the form that promotes. */
export const promoteCalibrationPage = opsPage({
  path: "/calibrations/:id/promote",
  async show({ sql }, { params }) {
    const id = idOf(params["id"]);
    const row = id === null ? null : await findCalibration(sql, String(id));
    if (row === null) return null;
    const [table, live, newest] = await Promise.all([
      readTable(sql, row.tableId),
      findLiveRecord(sql, row.tableId),
      findNewestPromotion(sql, row.tableId),
    ]);
    const { state: _, ...record } = row;
    const data = {
      record,
      summary: summaryOf(row),
      table,
      live,
      newest,
      expected: newest?.id ?? "0",
      behind: table.newestSeq - row.toSeq,
      problem: problemOf(row, table.newestSeq),
    };
    const crumbs = [
      { label: "Calibrations", href: CALIBRATIONS },
      { label: `Calibration ${row.id}`, href: `${CALIBRATIONS}/${row.id}` },
    ];
    return { template: "calibrations/promote", title: `Promote calibration ${row.id}`, data, crumbs };
  },
});

function problemOf(row: WholeCalibration, newestSeq: bigint): string | null {
  const behind = newestSeq - row.toSeq;
  if (row.seenSeq !== null) return notLive(row);
  if (row.otherBands)
    return `calibration ${row.id} uses other bands than the table, so its forecasts would be of other colors: it can be compared, never promoted`;
  if (behind > MOST_ROUNDS)
    return `calibration ${row.id} ends ${behind} rounds before the newest; more than ${MOST_ROUNDS} are too many to roll forward in a request: repeat its run up to now and promote the result, or use \`roundhouse calibration promote\``;
  return null;
}

const form = z.object({
  reason,
  expected: z.string().regex(/^\d{1,18}$/, "expected the value of the form; reload it"),
});

/** Makes a calibration the live state of its table. */
export const promoteCalibrationAction = opsAction({
  name: "calibration.promote",
  title: "Promote calibration",
  path: "/calibrations/:id/promote",
  roles: ["data"],
  isDangerous: true,
  form,
  async run(parts, { visitor, params, form: given }) {
    const { sql } = parts;
    const id = idOf(params["id"]);
    const row = id === null ? null : await findCalibration(sql, String(id));
    if (row === null) throw new PageError(404, "there is no such calibration");
    const { newestSeq } = await readTable(sql, row.tableId);
    const problem = problemOf(row, newestSeq);
    if (problem !== null) return { ok: false, problem };
    try {
      const promoted = await promoteCalibration(
        sql,
        row.id,
        { by: visitor.email, reason: given.reason },
        {
          roundsPerChunk: ROUNDS_PER_CHUNK,
          check: refuseLaterPromotion(
            { id: row.tableId, name: row.table },
            given.expected === "0" ? null : given.expected,
          ),
          also: async (tx, done) => {
            await appendAudit(tx, auditEntry(visitor, promotionReport(done)));
          },
        },
      );
      await tellReaders(parts);
      const { calibration_id, table, model, version } = promoted;
      const message = `calibration ${row.id} is live on ${table} as calibration ${calibration_id}, ${model} version ${version}`;
      return { ok: true, message, location: `${CALIBRATIONS}/${calibration_id}` };
    } catch (error) {
      if (error instanceof PromotedMeanwhile || error instanceof UsageError)
        return { ok: false, problem: error.message };
      throw error;
    }
  },
});
