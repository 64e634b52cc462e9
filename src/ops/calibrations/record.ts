import { fullWidth } from "../../charts/draw.ts";
import { waitsPlot } from "../../charts/waits.ts";
import { findCalibration } from "../../calibration/calibration-store.ts";
import { detailOf } from "../../calibration/calibration-view.ts";
import { findLiveRecord } from "../../calibration/runs/live-record-store.ts";
import { findRunOf } from "../../calibration/runs/run-list-store.ts";
import { HEIGHT_COLUMNS, heightRows, reliabilityFigure } from "../../frame/text/accuracy-format.ts";
import { fitRows, WINDOW_COLUMNS, windowRows } from "../../frame/text/calibration-format.ts";
import { opsPage } from "../contract.ts";
import { figureOf } from "../../frame/figure.ts";
import { idOf } from "../../frame/path-id.ts";
import { linkTo } from "./compare.ts";
import { CALIBRATIONS } from "./run-view.ts";

/** One calibration: its state, how well it fits, and who requested it. */
export const calibrationPage = opsPage({
  path: "/calibrations/:id",
  async show({ sql, log }, { params, visitor }) {
    const id = idOf(params["id"]);
    const row = id === null ? null : await findCalibration(sql, String(id));
    if (row === null) return null;
    const [run, live] = await Promise.all([findRunOf(sql, row.id), findLiveRecord(sql, row.tableId)]);
    const detail = detailOf(row);
    const { plot, ...numbers } = reliabilityFigure("Reliability of the backtest", detail.reliability);
    const figures = [await figureOf(log, fullWidth(plot), numbers)];
    if (detail.waits !== null) {
      const { waits, heights } = detail.waits;
      figures.push(
        await figureOf(log, fullWidth(waitsPlot("PIT of waits for the top color", waits, heights)), {
          columns: HEIGHT_COLUMNS,
          rows: heightRows(heights),
        }),
      );
    }
    const data = {
      detail,
      run,
      fit: fitRows(detail),
      figures,
      recordHash: row.recordHash,
      otherBands: row.otherBands,
      live,
      isLive: live?.id === row.id,
      windows: { columns: WINDOW_COLUMNS, rows: windowRows(detail.windows) },
    };
    const crumbs = [{ label: "Calibrations", href: CALIBRATIONS }];
    const isCandidate = detail.order === "taken" && !data.isLive;
    const mayPromote = isCandidate && !row.otherBands && (visitor.role === "data" || visitor.role === "admin");
    const header = {
      ...(mayPromote && { action: { label: "Promote calibration", href: `${CALIBRATIONS}/${row.id}/promote` } }),
      ...(isCandidate &&
        live !== null && { more: [{ label: `Compare with live (${live.id})`, href: linkTo([live.id, row.id]) }] }),
    };
    return { template: "calibrations/record", title: `Calibration ${row.id}`, data, crumbs, header };
  },
});
