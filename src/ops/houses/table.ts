import { z } from "zod";
import { readDay } from "../../forecasts/accuracy/measured-store.ts";
import { findTableDetail } from "../../health/table-facts-store.ts";
import { findTablesOf } from "../../rounds/lists/table-filter-store.ts";
import { multiplierText } from "../../rounds/round.ts";
import { readBoard } from "../board/facts.ts";
import { heatRow, heatStart } from "../board/heat.ts";
import { listCells, listGapMarks } from "../board/heat-store.ts";
import { findProblems } from "../board/problems.ts";
import { boardRows, evidenceText, withHits } from "../board/rows.ts";
import { opsPage } from "../contract.ts";
import { listAuditHours, listNewestForecasts, listNewestRounds } from "./table-store.ts";

const querySchema = z.object({ rounds: z.coerce.number().int().min(10).max(500).default(25) });
const FORECASTS = 20;
const AUDIT_HOURS = 24;

/** One table: its newest rounds and forecasts, what is open, and what its rounds prove of the house. */
export const tablePage = opsPage({
  path: "/tables/:house/:game/:market",
  query: querySchema,
  async show(parts, { params, query }) {
    const { sql } = parts;
    const { house = "", game = "", market = "" } = params;
    const name = `${house}/${game}/${market}`;
    const [id] = (await findTablesOf(sql, name))?.ids ?? [];
    if (id === undefined) return null;
    const [facts, settings, rounds, forecasts, audits, cells, marks, hits] = await Promise.all([
      readBoard(parts, house),
      findTableDetail(sql, id),
      listNewestRounds(sql, id, query.rounds),
      listNewestForecasts(sql, id, FORECASTS),
      listAuditHours(sql, id, AUDIT_HOURS),
      listCells(sql, [id]),
      listGapMarks(sql, [id]),
      readDay(sql, [id]),
    ]);
    const problems = findProblems(facts).filter(({ subject }) => subject === name || subject === house);
    const rows = boardRows(facts, problems, parts.liveWindowSeconds).filter((one) => one.table.id === id);
    const [row] = withHits(rows, hits);
    if (row === undefined || settings === null) return null; // gone between two reads
    const start = heatStart(facts.now);
    const heat = heatRow({ start, perMinute: row.usual?.perMinute ?? 0, createdAt: row.table.createdAt }, cells, marks);
    const data = {
      row,
      problems,
      settings,
      rounds,
      forecasts,
      audits,
      notices: facts.notices.filter(({ tableId }) => tableId === id),
      heat: { start, rows: [{ name, href: row.href, ...heat }] },
      query,
      format: { evidenceText, multiplierText: (hundredths: string) => multiplierText(Number(hundredths)) },
    };
    return {
      template: "houses/table",
      title: name,
      data,
      refreshSeconds: 5,
      crumbs: [
        { label: "Board", href: "/ops" },
        { label: house, href: `/ops/houses/${house}` },
      ],
    };
  },
});
