import type { Queryable } from "../../db/client.ts";
import { listRevisions, listRounds, listScores, listSets, readSets, type SetRow } from "./new-facts-store.ts";
import { earlierCutoffs, portionOf, type Portion, type Progress } from "./portion.ts";

/** Where to read from in the rows of a table; `hasRevisions: false` skips the query of revisions. */
export type ReadFrom = Progress & { tableId: number; hasRevisions: boolean };

/** The next rows of a table, with the already counted sets that they refer to. */
export interface ReadPortion<From> {
  mark: From;
  portion: Portion;
  earlierSets: SetRow[];
}

/**
 * The next committed rows of each table, at most `limit` of each kind, up to `upTo` if it is given.
 *
 * Sets are read last: each statement sees all earlier commits, so no set that scores and rounds need is missing.
 */
export async function readPortions<From extends ReadFrom>(
  sql: Queryable,
  marks: readonly From[],
  limit: number,
  upTo?: Progress,
): Promise<ReadPortion<From>[]> {
  const after = (kind: keyof Progress, of = marks) =>
    of.map((mark) => ({ tableId: mark.tableId, after: mark[kind], upTo: upTo?.[kind] }));
  const revised = marks.filter(({ hasRevisions }) => hasRevisions);
  const revisions = revised.length === 0 ? [] : await listRevisions(sql, after("revision", revised), limit);
  const scores = Map.groupBy(await listScores(sql, after("settledSeq"), limit), ({ tableId }) => tableId);
  const rounds = new Map((await listRounds(sql, after("roundSeq"), limit)).map((own) => [own.tableId, own]));
  const sets = Map.groupBy(await listSets(sql, after("setSeq"), limit), ({ tableId }) => tableId);
  const portions = marks.map((mark) => {
    const { tableId } = mark;
    const read = {
      sets: sets.get(tableId) ?? [],
      scores: scores.get(tableId) ?? [],
      revisions: revisions.filter((revision) => revision.tableId === tableId),
      rounds: rounds.get(tableId)?.rounds ?? [],
      lastSeq: upTo?.roundSeq ?? rounds.get(tableId)?.lastSeq ?? mark.roundSeq,
    };
    return { mark, portion: portionOf(mark, read, limit) };
  });
  const keys = portions.flatMap(({ mark, portion }) =>
    [...earlierCutoffs(mark, portion)].map((cutoffSeq) => ({ tableId: mark.tableId, cutoffSeq })),
  );
  const earlier = Map.groupBy(await readSets(sql, keys), ({ tableId }) => tableId);
  return portions.map((own) => ({ ...own, earlierSets: earlier.get(own.mark.tableId) ?? [] }));
}
