import type { PublishedReadingJson } from "../forecasts/readings/reading-state.ts";
import type { Queryable } from "../db/client.ts";
import { shownHour } from "../forecasts/accuracy/mark-store.ts";
import type { ReadSet } from "../forecasts/published-forecast.ts";
import { NOTICE_ORDER } from "../rounds/notices/notices.ts";

/** A house as callers see it. */
export interface HouseRow {
  id: string;
  name: string;
  simulated: boolean;
  enabled: boolean;
  paused: boolean;
  disabledTables: number[];
}

/** Returns all houses. They are few and change without a notification, so they are read again each time. */
export async function readHouses(sql: Queryable): Promise<HouseRow[]> {
  return sql<HouseRow[]>`
    select
      h.id,
      h.name,
      h.simulated,
      h.enabled,
      h.paused_at is not null as paused,
      array(select id from tables where house_id = h.id and not enabled) as "disabledTables"
    from houses h
    order by h.id`;
}

/** By table, the version of its head or of its accuracy. */
export type Versions = ReadonlyMap<number, number>;

/** The start of a read: the versions of the existing tables, and the time of the database. */
export interface CurrentVersions {
  heads: Versions;
  accuracy: Versions;
  /** Milliseconds since 1970. */
  ms: number;
  /** How long ago a replica last replayed a commit, the maximum of its lag; 0 for a primary. */
  behindMs: number;
}

/** Returns the versions of these tables, or of all: one row with lists, which is faster than a row per table. */
export async function readVersions(sql: Queryable, tableIds: readonly number[] | null): Promise<CurrentVersions> {
  interface Row {
    heads: [number[] | null, number[] | null];
    accuracy: [number[] | null, number[] | null];
    ms: number;
    behindMs: number;
  }
  const own = tableIds === null ? sql`true` : sql`table_id = any(${[...tableIds]}::integer[])`;
  const [row] = await sql<Row[]>`
    select
      (select json_build_array(array_agg(table_id), array_agg(version)) from table_heads where ${own}) as heads,
      (
        select json_build_array(array_agg(table_id), array_agg(${accuracyVersion(sql)}))
        from accuracy_marks m
        where ${own}
      ) as accuracy,
      extract(epoch from clock_timestamp())::float8 * 1000 as ms,
      case
        when pg_is_in_recovery() then
          -- a replica that has replayed no commit since its start is as old as its newest checkpoint
          greatest(0, extract(epoch from clock_timestamp()
            - coalesce(pg_last_xact_replay_timestamp(), (select checkpoint_time from pg_control_checkpoint()))))::float8 * 1000
        else 0
      end as "behindMs"`;
  if (row === undefined) throw new Error("expected the versions of the tables, found none");
  return { heads: asVersions(row.heads), accuracy: asVersions(row.accuracy), ms: row.ms, behindMs: row.behindMs };
}

/** The version of a mark `m`, and after the point the hours that its table is at rest: its periods end later each hour. */
function accuracyVersion(sql: Queryable) {
  return sql`m.version + extract(epoch from ${shownHour(sql)} - m.hour)::float8 / 3600 / 1048576`;
}

function asVersions([ids, versions]: [number[] | null, number[] | null]): Versions {
  return new Map(ids?.map((id, at) => [id, versions?.[at] ?? 0]));
}

/** The calibration that the live state last reproduced. */
export interface CalibrationRow {
  version: number;
  rounds: number;
  as_of: string;
}

/** A table with its head, as callers see it. */
export interface HeadRow {
  id: number;
  version: number;
  house: string;
  game: string;
  market: string;
  position: number;
  enabled: boolean;
  roundIds: "consecutive" | "opaque";
  /** How often staff set back its newest number. */
  resets: number;
  lastSeq: number;
  lastOrdinal: number;
  newestSeq: number | null;
  /** The newest payloads had late rounds only. */
  isLate: boolean;
  lastRoundAt: string | null;
  lastPolledMs: number | null;
  openSets: number[];
  /** A forecast ended while settling was paused. */
  hasEnded: boolean;
  setSeq: number | null;
  nowPpm: (number | null)[];
  changedAt: string;
  continuityText: string | null;
  calibration: CalibrationRow | null;
  /** When the reading was published, in microseconds; null before the first. */
  readingAt: number | null;
  /** Null if the caller has it already. */
  reading: PublishedReadingJson | null;
}

/** A table to read, and the reading that is cached of it. */
export interface WantedHead {
  id: number;
  readingAt: number | null;
}

/** Returns tables with their current heads. */
export async function readHeads(sql: Queryable, wanted: readonly WantedHead[]): Promise<HeadRow[]> {
  if (wanted.length === 0) return [];
  return sql<HeadRow[]>`
    select
      t.id,
      h.version::float8 as version,
      t.house_id as house,
      t.game, t.market,
      t.position,
      t.enabled,
      t.round_ids as "roundIds",
      (select count(*)::integer from number_resets where table_id = h.table_id) as resets,
      h.last_seq::float8 as "lastSeq",
      h.last_ordinal::float8 as "lastOrdinal",
      h.newest_seq::float8 as "newestSeq",
      utc_text(h.last_round_at) as "lastRoundAt",
      extract(epoch from h.last_polled_round_at)::float8 * 1000 as "lastPolledMs",
      array_to_json(h.open_sets) as "openSets",
      h.has_ended as "hasEnded",
      h.set_seq::float8 as "setSeq",
      array_to_json(h.now_ppm) as "nowPpm",
      utc_text(h.changed_at) as "changedAt",
      open.text as "continuityText",
      open.late as "isLate",
      met.calibration,
      r."readingAt",
      case when r."readingAt" is distinct from wanted.reading_at then r.reading end as reading
    from unnest(
      ${wanted.map(({ id }) => id)}::integer[],
      ${wanted.map(({ readingAt }) => readingAt)}::float8[]
    ) as wanted (table_id, reading_at)
    join table_heads h on h.table_id = wanted.table_id
    join tables t on t.id = h.table_id
    cross join lateral (
      select
        coalesce(bool_or(n.kind = 'ids'), false) as late,
        string_agg(
          upper(left(n.text, 1)) || substr(n.text, 2), '. '
          order by array_position(${[...NOTICE_ORDER]}::text[], n.kind)
        ) as text
      from notices n
      where n.table_id = h.table_id
        and n.closed_at is null
    ) open
    left join lateral (
      select json_build_object('version', c.version, 'rounds', c.rounds, 'as_of', utc_text(c.created_at)) as calibration
      from calibrations c
      where c.table_id = h.table_id
        and c.model = h.model
        and c.kind <> 'manual'
        and c.live_state_hash = c.state_hash
      order by c.version desc
      limit 1
    ) met on true
    left join lateral (
      select extract(epoch from published_at)::float8 as "readingAt", reading
      from published_readings
      where table_id = h.table_id
    ) r on true`;
}

/** A forecast set to read. */
export interface WantedSet {
  tableId: number;
  cutoffSeq: number;
}

/** Stored sets, each with the palette of its colors; by table and cutoff. */
export async function readSets(
  sql: Queryable,
  wanted: readonly WantedSet[],
): Promise<(Omit<ReadSet, "colors"> & { palette: number })[]> {
  if (wanted.length === 0) return [];
  return sql<(Omit<ReadSet, "colors"> & { palette: number })[]>`
    select
      s.table_id as "tableId",
      s.cutoff_seq::float8 as "cutoffSeq",
      s.cutoff_ordinal::float8 as "cutoffOrdinal",
      s.first_seq::float8 as "firstSeq",
      s.model,
      utc_text(s.issued_at) as "issuedAt",
      s.cutoff_round_id as "cutoffRoundId",
      s.target_round_id as "targetRoundId",
      c.palette,
      array_to_json(s.features) as features,
      array_to_json(s.horizons) as horizons,
      array_to_json(s.p_ppm) as "pPpm",
      array_to_json(s.base_ppm) as "basePpm",
      encode(s.hashes, 'hex') as hashes
    from unnest(
      ${wanted.map(({ tableId }) => tableId)}::integer[],
      ${wanted.map(({ cutoffSeq }) => cutoffSeq)}::bigint[]
    ) as wanted (table_id, cutoff_seq)
    join forecast_sets s on s.table_id = wanted.table_id and s.cutoff_seq = wanted.cutoff_seq
    join rounds c on c.table_id = s.table_id and c.seq = s.cutoff_seq
    order by s.table_id, s.cutoff_seq`;
}

/** Names of the colors of palettes, lowest band first. */
export async function readPalettes(
  sql: Queryable,
  ids: readonly number[],
): Promise<{ id: number; colors: string[] }[]> {
  return sql<{ id: number; colors: string[] }[]>`
    select id, array(select band ->> 'name' from jsonb_array_elements(bands) as band) as colors
    from palettes
    where id = any(${[...ids]}::smallint[])`;
}

/** Size and root of the newest checkpoint of the newest log, as `1234 <base64>`; null before the first. */
export async function readCheckpoint(sql: Queryable): Promise<string | null> {
  const [row] = await sql<{ checkpoint: string }[]>`
    select c.size || ' ' || split_part(c.note, E'\n', 3) as checkpoint
    from (select id from logs order by id desc limit 1) l
    join log_checkpoints c on c.log_id = l.id
    order by c.size desc
    limit 1`;
  return row?.checkpoint ?? null;
}
