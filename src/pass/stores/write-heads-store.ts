import type { Queryable } from "../../db/client.ts";
import { MOVED_HEADS } from "../compute/rows.ts";
import type { CompletePassRows as PassRows } from "../compute/state.ts";
import { plainArray, textArray } from "./arrays.ts";
import { rowsOf, type Statement } from "./table-rows.ts";

/** A lease under which passes were made. */
export interface HeldLease {
  house: string;
  shard: number;
  epoch: bigint;
}

/** A response of a table that had nothing new, when its head had this version. */
export interface NotedResponse {
  tableId: number;
  version: bigint;
  respondedAt: string | null;
}

/** Locks leases and heads, and checks their epochs and versions. */
export function lockPasses(
  sql: Queryable,
  passes: readonly Pick<PassRows, "tableId" | "version">[],
  leases: readonly HeldLease[],
): Statement {
  return sql`
    select lock_passes(
      ${textArray(leases.map(({ house }) => house))}::text[],
      ${plainArray(leases.map(({ shard }) => shard))}::integer[],
      ${plainArray(leases.map(({ epoch }) => epoch))}::bigint[],
      ${plainArray(passes.map(({ tableId }) => tableId))}::integer[],
      ${plainArray(passes.map(({ version }) => version))}::bigint[]
    )`;
}

const ASSIGNED = MOVED_HEADS.assignFrom("n");

/** Moves heads to what passes made of them. Their versions were checked by {@link lockPasses}. */
export function moveHeads(sql: Queryable, passes: readonly PassRows[]): Statement | null {
  if (passes.length === 0) return null;
  return sql`
    update table_heads h
    set version = h.version + 1, changed_at = clock_timestamp(), ${ASSIGNED}
    from (${MOVED_HEADS.rows(rowsOf(passes, ({ head }) => [head]))}) n
    where h.table_id = n.table_id`;
}

/** Times of responses with nothing new; the version stays, so that no reader reloads. */
export function noteResponses(sql: Queryable, noted: readonly NotedResponse[]): Statement | null {
  if (noted.length === 0) return null;
  return sql`
    update table_heads h
    set responded_at = n.responded_at
    from unnest(
      ${plainArray(noted.map(({ tableId }) => tableId))}::integer[],
      ${plainArray(noted.map(({ respondedAt }) => respondedAt))}::timestamptz[]
    ) as n (table_id, responded_at)
    where h.table_id = n.table_id`;
}
