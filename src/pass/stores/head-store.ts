import type { PublishedReadingJson } from "../../forecasts/readings/reading-state.ts";
import type { NumberReset } from "../../forecasts/readings/house-audit.ts";
import type { Queryable } from "../../db/client.ts";
import type { Color } from "../../rounds/colors.ts";
import type { Selected } from "../columns.ts";
import { HEADS, SNAPSHOTS, type HeadRow, type SnapshotRow } from "../compute/rows.ts";

/** What is selected with a head. */
export interface HeadFacts {
  tableId: number;
  house: string;
  game: string;
  market: string;
  roundIds: "consecutive" | "opaque";
  /** Entries of the houses file. */
  settings: object;
  resets: readonly NumberReset[];
  bands: readonly Color[];
  version: bigint;
  /** A payload is unread, so no set may be issued. */
  hasUnread: boolean;
  /** The published reading; null before the first. */
  reading: PublishedReadingJson | null;
  badResponses: number;
  formatSince: string | null;
}

const HEAD = HEADS.selectFrom("h");

/** The heads of tables, by id. */
export function listHeads(sql: Queryable, ids: readonly number[]) {
  return sql<(Selected<HeadRow> & HeadFacts)[]>`
    select
      h.table_id as "tableId", t.house_id as house, t.game, t.market, t.round_ids as "roundIds", t.settings, p.bands,
      number_resets_of(h.table_id) as resets, f.bad_responses as "badResponses", f.format_since::text as "formatSince",
      r.reading,
      exists (select from payloads where table_id = h.table_id and state = 'unread') as "hasUnread", h.version, ${HEAD}
    from table_heads h
    join tables t on t.id = h.table_id
    join palettes p on p.id = h.palette
    join feeds f on f.table_id = h.table_id
    left join published_readings r on r.table_id = h.table_id
    where h.table_id = any(${ids}::integer[])
    order by h.table_id`;
}

type StoredSnapshot = Selected<SnapshotRow> & { tableId: number; state: Buffer };

const SNAPSHOT = SNAPSHOTS.selectFrom("s");

/** The snapshots of the models of heads. */
export function listSnapshots(sql: Queryable, ids: readonly number[]) {
  return sql<StoredSnapshot[]>`
    select s.table_id as "tableId", s.state, ${SNAPSHOT}
    from table_heads h
    join model_snapshots s on s.table_id = h.table_id and s.model = h.model
    where h.table_id = any(${ids}::integer[])`;
}

/** A snapshot from its stored row. */
export function asSnapshot(row: StoredSnapshot | undefined): SnapshotRow | null {
  return row === undefined ? null : { ...SNAPSHOTS.parse(row), state: row.state };
}
