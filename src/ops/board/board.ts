import { z } from "zod";
import { readDay } from "../../forecasts/accuracy/measured-store.ts";
import { STATUSES } from "../../houses/status.ts";
import { opsPage, type OpsParts } from "../contract.ts";
import { readBoard } from "./facts.ts";
import { heatRow, heatStart } from "./heat.ts";
import { listCells, listGapMarks } from "./heat-store.ts";
import { latencyText } from "./latency.ts";
import { listStatuses, sumPolls } from "./polls-store.ts";
import { findProblems, groupProblems } from "./problems.ts";
import { boardRows, type BoardRow, evidenceText, filterRows, SORTS, sortRows, withHits, withPolls } from "./rows.ts";
import { maySnooze, MOST_SNOOZED, problemKey, splitSnoozed } from "./snooze.ts";
import { CLASS_TEXT, codeText, statusStrip } from "./strip.ts";
import { readWaiting } from "./summary/summary-store.ts";
import { countFailedRuns, summaryTiles } from "./summary/summary.ts";

const PER_PAGE = 50;
const PROBLEMS_SHOWN = 8;
const STRIP = { hours: 1, cellMinutes: 5, count: 12 } as const;

const sorts = SORTS.flatMap((sort) => [sort, `-${sort}` as const]);
const querySchema = z.object({
  q: z.string().trim().max(100).default(""),
  status: z.enum(["", ...STATUSES]).default(""),
  wrong: z.enum(["", "1"]).default(""),
  columns: z.enum(["", "all"]).default(""),
  sort: z.enum(sorts).default("worst"),
  page: z.coerce.number().int().min(1).max(100_000).default(1),
});

/** Every house and table at a glance: what is wrong first, then all tables, then how fresh they were in the last day. */
export const boardPage = opsPage({
  path: "/",
  nav: { label: "Board", order: 10, group: "Live" },
  query: querySchema,
  async show(parts, { visitor, query }) {
    const [facts, waiting, failedRuns] = await Promise.all([
      readBoard(parts),
      readWaiting(parts.sql),
      countFailedRuns(parts),
    ]);
    const found = findProblems(facts);
    const { open, snoozed } = splitSnoozed(found, facts.snoozes, facts.now);
    const problems = groupProblems(open);
    const all = boardRows(facts, found, parts.liveWindowSeconds);
    const rows = filterRows(all, { q: query.q, status: query.status, wrong: query.wrong === "1" });
    const { rows: visible, strips } = await pageOfRows(parts, rows, query);
    const heat = await heatOf(parts, visible);
    const { liveWindowSeconds } = parts;
    const data = {
      tiles: summaryTiles({ houses: facts.houses, rows: all, waiting, failedRuns, liveWindowSeconds }),
      problems: problems.slice(0, PROBLEMS_SHOWN),
      more: Math.max(0, problems.length - PROBLEMS_SHOWN),
      bad: problems.filter(({ tone }) => tone === "bad").length,
      warned: problems.filter(({ tone }) => tone === "warn").length,
      snoozed: snoozed.length,
      maySnooze: maySnooze(visitor.role),
      keyOf: problemKey,
      most: MOST_SNOOZED,
      counts: countStatuses(all),
      houses: facts.houses.length,
      rows: visible,
      total: rows.length,
      tables: all.length,
      perPage: PER_PAGE,
      statuses: STATUSES,
      query,
      strips,
      heat,
      format: { latencyText, evidenceText, codeText, CLASS_TEXT },
    };
    return { template: "board/board", title: "Board", data, refreshSeconds: 5 };
  },
});

/** The rows of the requested page, with how their houses' polls went. */
async function pageOfRows(
  { sql }: OpsParts,
  rows: readonly BoardRow[],
  { sort, page }: { sort: string; page: number },
) {
  const cut = (sorted: readonly BoardRow[]) => sorted.slice((page - 1) * PER_PAGE, page * PER_PAGE);
  const needsPolls = sort === "p95" || sort === "-p95";
  const needsHits = sort === "hit" || sort === "-hit";
  const polled = needsPolls ? withPolls(rows, await sumPolls(sql, null)) : rows;
  const first = needsHits ? withHits(polled, await readDay(sql)) : polled;
  const chosen = cut(sortRows(first, sort));
  const houses = [...new Set(chosen.map(({ house }) => house.id))];
  const [sums, statuses, hits] = await Promise.all([
    sumPolls(sql, houses),
    listStatuses(sql, houses, STRIP),
    readDay(
      sql,
      chosen.map(({ table }) => table.id),
    ),
  ]);
  const cellMs = STRIP.cellMinutes * 60_000;
  const startMs = (Math.floor(Date.now() / cellMs) + 1 - STRIP.count) * cellMs;
  const byHouse = Map.groupBy(statuses, ({ house }) => house);
  const strips = new Map(
    houses.map((house) => [house, statusStrip(byHouse.get(house) ?? [], { startMs, cellMs, count: STRIP.count })]),
  );
  return { rows: withHits(withPolls(chosen, sums), hits), strips };
}

async function heatOf({ sql }: OpsParts, rows: readonly BoardRow[]) {
  const ids = rows.map(({ table }) => table.id);
  const [cells, marks] = await Promise.all([listCells(sql, ids), listGapMarks(sql, ids)]);
  const cellsOf = Map.groupBy(cells, ({ tableId }) => tableId);
  const marksOf = Map.groupBy(marks, ({ tableId }) => tableId);
  const start = heatStart(new Date());
  return {
    start,
    rows: rows.map(({ table, name, href, usual }) => ({
      name,
      href,
      ...heatRow(
        { start, perMinute: usual?.perMinute ?? 0, createdAt: table.createdAt },
        cellsOf.get(table.id) ?? [],
        marksOf.get(table.id) ?? [],
      ),
    })),
  };
}

function countStatuses(rows: readonly BoardRow[]): Record<string, number> {
  const counts = Object.fromEntries(STATUSES.map((status) => [status, 0]));
  for (const { status } of rows) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
