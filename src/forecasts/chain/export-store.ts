import type { Reader } from "../../db/reader.ts";
import type { ExportRange } from "../../rounds/lists/export-store.ts";

/** Columns of exported forecasts, in order; `hash` covers `prev_hash` and the texts of the columns before `status`. */
export const FORECAST_COLUMNS = [
  "seq",
  "forecast_id",
  "table",
  "model",
  "feature",
  "issued_at",
  "absent_at",
  "pause_ms",
  "cutoff_round_id",
  "history_hash",
  "target_round_id",
  "horizon",
  "p_ppm",
  "base_ppm",
  "status",
  "outcome",
  "scored_at",
  "prev_hash",
  "hash",
] as const;

/** Columns of exported scores, in order; `hash` covers `prev_hash` and the texts of the columns before it. */
export const SCORE_COLUMNS = [
  "forecast_id",
  "rev",
  "status",
  "reason",
  "outcome",
  "settled_seq",
  "target_requested_at",
  "scored_at",
  "prev_hash",
  "hash",
] as const;

/**
 * A forecast as it is exported: text in every column, empty for null. `p_ppm` and `base_ppm` have one number per color,
 * separated by `|`, or one of a window. `status` is `open` or that of the newest score.
 */
export type ExportedForecast = Record<(typeof FORECAST_COLUMNS)[number], string>;

/** A score as it is exported: text in every column, empty for null. `outcome` is the color, of a window 1 or 0. */
export type ExportedScore = Record<(typeof SCORE_COLUMNS)[number], string>;

const SETS_PER_READ = 500;
/** On-time rounds after which the longest window has ended. */
const LONGEST_WINDOW = 400;

/**
 * The forecasts of a table by seq of their cutoff, in the order of its chain, a page at a time, each with its newest score.
 * A page ends with a whole set.
 */
export async function* readForecastsForExport(
  read: Reader,
  tableId: number,
  { after: first = "0", upTo = MOST }: ExportRange = {},
): AsyncGenerator<(ExportedForecast & { cutoff_seq: string })[]> {
  let after = first;
  for (;;) {
    const page = await read<(ExportedForecast & { cutoff_seq: string })[]>`
      with page as (
        select max(cutoff_seq) as upto
        from (
          select cutoff_seq
          from forecast_sets
          where table_id = ${tableId}
            and cutoff_seq > ${after}
            and cutoff_seq <= ${upTo}
          order by cutoff_seq
          limit ${SETS_PER_READ}
        ) sets
      ),
      newest as (
        select distinct on (forecast_seq) forecast_seq, status, reason, outcome, scored_at
        from scores
        where table_id = ${tableId}
          and settled_seq > ${after}
          and settled_seq <= coalesce(
            (
              select seq
              from rounds
              where table_id = ${tableId}
                and seq > (select upto from page)
                and ordinal is not null
              order by seq
              limit 1
              offset ${LONGEST_WINDOW - 1}
            ),
            ${MOST}::bigint
          )
        order by forecast_seq, rev desc
      )
      select
        f.cutoff_seq::text as cutoff_seq,
        f.seq::text as seq,
        f.forecast_id,
        t.house_id || '/' || t.game || '/' || t.market as "table",
        f.model,
        f.feature,
        utc_text(f.issued_at) as issued_at,
        utc_text(f.absent_at) as absent_at,
        f.pause_ms::text as pause_ms,
        f.cutoff_round_id,
        f.history_hash,
        coalesce(f.target_round_id, '') as target_round_id,
        f.horizon::text as horizon,
        array_to_string(f.p_ppm, '|') as p_ppm,
        array_to_string(f.base_ppm, '|') as base_ppm,
        case when s.status is null then 'open' else concat_ws('_', s.status, nullif(s.reason, '')) end as status,
        coalesce(
          case f.feature when 'next_color' then p.bands -> s.outcome ->> 'name' else s.outcome::text end, ''
        ) as outcome,
        coalesce(utc_text(s.scored_at), '') as scored_at,
        f.prev_hash,
        f.hash
      from forecasts f
      join tables t on t.id = f.table_id
      join rounds r on r.table_id = f.table_id and r.seq = f.cutoff_seq
      join palettes p on p.id = r.palette
      left join newest s on s.forecast_seq = f.seq
      where f.table_id = ${tableId}
        and f.cutoff_seq > ${after}
        and f.cutoff_seq <= (select upto from page)
      order by f.cutoff_seq, f.seq`;
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    after = last.cutoff_seq;
  }
}

const MOST = "9223372036854775807";

/** A score with its place: the set that it is in, or the number of the revision. */
type PlacedScore = ExportedScore & { place: string };

/**
 * The position in the export of a table's scores: the last score set and revision, and the `prev_hash` of the next
 * score.
 */
export interface ScorePlace {
  set: string;
  revision: string;
  hash: string;
}

const FIRST_PLACE: ScorePlace = { set: "0", revision: "0", hash: "0".repeat(64) };

/**
 * The scores of a table in the order of its chain, in pages with the start of the next page. Score sets are ordered by
 * `settled_seq` and revisions by their number; `prev_hash` decides between the two. If neither has the expected
 * `prev_hash` because a row was changed, the older one by `scored_at` is next. Ends before the first score set with a
 * `settled_seq` above `upTo`.
 */
export async function* readScorePages(
  read: Reader,
  tableId: number,
  { from = FIRST_PLACE, upTo = MOST }: { from?: ScorePlace | undefined; upTo?: string } = {},
): AsyncGenerator<{ rows: ExportedScore[]; next: ScorePlace }> {
  const sets = readAll(from.set, (after) => listSetScores(read, tableId, after));
  const revisions = readAll(from.revision, (after) => listRevisions(read, tableId, after));
  let [set, revision] = [await sets.next(), await revisions.next()];
  let place = from;
  let rows: ExportedScore[] = [];
  while (set.done !== true || revision.done !== true) {
    const isRevision =
      revision.done !== true &&
      (set.done === true ||
        revision.value.prev_hash === place.hash ||
        (set.value.prev_hash !== place.hash && revision.value.scored_at < set.value.scored_at));
    const next = isRevision ? revision.value : set.value;
    if (next === undefined || (!isRevision && BigInt(next.place) > BigInt(upTo))) break;
    rows.push(next);
    place = { ...place, [isRevision ? "revision" : "set"]: next.place, hash: next.hash };
    if (isRevision) revision = await revisions.next();
    else set = await sets.next();
    const isInSet = !isRevision && set.done !== true && set.value.place === place.set;
    if (rows.length < SCORES_PER_PAGE || isInSet) continue;
    yield { rows, next: place };
    rows = [];
  }
  if (rows.length > 0) yield { rows, next: place };
}

/** The scores of a table in the order of its chain, a page at a time. */
export async function* readScoresForExport(read: Reader, tableId: number): AsyncGenerator<ExportedScore[]> {
  for await (const { rows } of readScorePages(read, tableId)) yield rows;
}

const SCORES_PER_PAGE = 2_000;

async function* readAll(
  from: string,
  list: (after: string) => PromiseLike<PlacedScore[]>,
): AsyncGenerator<PlacedScore, undefined> {
  let after = from;
  for (;;) {
    const page = await list(after);
    const last = page.at(-1);
    if (last === undefined) return undefined;
    yield* page;
    after = last.place;
  }
}

/** First scores, set by set. */
function listSetScores(read: Reader, tableId: number, after: string): PromiseLike<PlacedScore[]> {
  return read<PlacedScore[]>`
    select
      s.settled_seq::text as place,
      format('f%s-%s', s.table_id, u.forecast_seq) as forecast_id,
      '1' as rev,
      concat_ws('_', (array['scored', 'void'])[u.status + 1], w.reason) as status,
      coalesce(w.reason, '') as reason,
      coalesce(case u.feature when 0 then p.bands -> u.outcome::integer ->> 'name' else u.outcome::text end, '')
        as outcome,
      s.settled_seq::text as settled_seq,
      coalesce(utc_text(s.target_requested_at), '') as target_requested_at,
      utc_text(s.scored_at) as scored_at,
      encode(case u.at when 1 then s.prev_hash else substr(s.hashes, (32 * u.at - 63)::integer, 32) end, 'hex')
        as prev_hash,
      encode(substr(s.hashes, (32 * u.at - 31)::integer, 32), 'hex') as hash
    from (
      select *
      from score_sets
      where table_id = ${tableId}
        and settled_seq > ${after}
      order by settled_seq
      limit ${SETS_PER_READ}
    ) s
    cross join lateral unnest(s.forecast_seqs, s.cutoff_seqs, s.features, s.statuses, s.reasons, s.outcomes)
      with ordinality as u (forecast_seq, cutoff_seq, feature, status, reason, outcome, at)
    cross join lateral (
      select (array['gap', 'late', 'conflict', 'impossible', 'operator'])[u.reason] as reason
    ) w
    left join rounds r on r.table_id = s.table_id and r.seq = u.cutoff_seq
    left join palettes p on p.id = r.palette
    order by s.settled_seq, u.at`;
}

function listRevisions(read: Reader, tableId: number, after: string): PromiseLike<PlacedScore[]> {
  return read<PlacedScore[]>`
    select
      v.revision::text as place,
      format('f%s-%s', v.table_id, v.forecast_seq) as forecast_id,
      v.rev::text as rev,
      concat_ws('_', (array['scored', 'void'])[v.status + 1], w.reason) as status,
      coalesce(w.reason, '') as reason,
      coalesce(case v.feature when 0 then p.bands -> v.outcome::integer ->> 'name' else v.outcome::text end, '')
        as outcome,
      v.settled_seq::text as settled_seq,
      coalesce(utc_text(s.target_requested_at), '') as target_requested_at,
      utc_text(v.scored_at) as scored_at,
      encode(v.prev_hash, 'hex') as prev_hash,
      encode(v.hash, 'hex') as hash
    from score_revisions v
    cross join lateral (
      select (array['gap', 'late', 'conflict', 'impossible', 'operator'])[v.reason] as reason
    ) w
    left join score_sets s on s.table_id = v.table_id and s.settled_seq = v.settled_seq
    left join rounds r on r.table_id = v.table_id and r.seq = v.cutoff_seq
    left join palettes p on p.id = r.palette
    where v.table_id = ${tableId}
      and v.revision > ${after}
    order by v.revision
    limit ${SETS_PER_READ}`;
}
