import type { Transaction } from "../db/client.ts";
import type { NumberReset } from "../forecasts/readings/house-audit.ts";
import type { Fairness } from "../houses/fairness/settings.ts";
import type { Color } from "../rounds/colors.ts";

/** A table to verify. */
export interface VerifiedTable {
  id: number;
  /** `house/game/market`. */
  name: string;
  bands: Color[];
  palette: number;
  consecutive: boolean;
  fairness: Fairness | null;
  feed: { scale?: number };
  lastSeq: bigint;
  forecastSeq: bigint;
  resets: NumberReset[];
  revisionHash: string;
  /** The edge that the house declares; null if it declares none. */
  edge: number | null;
  firstModel: string;
  /**
   * The state of the first calibration or else of the snapshot, with the bands and the edge that the table began with.
   */
  state: Buffer | null;
}

/** The tables to verify: one if an id is given, else all. */
export async function listTablesToVerify(tx: Transaction, tableId: number | undefined): Promise<VerifiedTable[]> {
  return tx<VerifiedTable[]>`
    select
      t.id,
      t.house_id || '/' || t.game || '/' || t.market as name,
      p.bands,
      h.palette,
      t.round_ids = 'consecutive' as consecutive,
      t.settings -> 'fairness' as fairness,
      coalesce(t.settings -> 'feed', '{}') as feed,
      h.last_seq as "lastSeq",
      h.forecast_seq as "forecastSeq",
      number_resets_of(t.id) as resets,
      t.revision_hash as "revisionHash",
      (t.settings ->> 'house_edge')::float8 as edge,
      coalesce(
        (
          select c.state
          from calibrations c
          where c.table_id = t.id
            and c.model = h.first_model
            and c.kind = 'rolling'
          order by c.id
          limit 1
        ),
        (select s.state from model_snapshots s where s.table_id = t.id and s.model = h.first_model)
      ) as state,
      h.first_model as "firstModel"
    from tables t
    join table_heads h on h.table_id = t.id
    join palettes p on p.id = h.palette
    ${tableId === undefined ? tx`` : tx`where t.id = ${tableId}`}
    order by t.id`;
}

/** A table that cannot be verified, because what describes it is missing. */
export interface IncompleteTable {
  name: string;
  expected: string;
  found: string;
}

/**
 * The first table that has no head or whose head names a palette that is not stored; null if there is none. It is not
 * among the tables to verify. Of all tables, one without a head counts only if it has rounds.
 */
export async function findIncomplete(tx: Transaction, tableId: number | undefined): Promise<IncompleteTable | null> {
  const [first] = await tx<IncompleteTable[]>`
    select
      t.house_id || '/' || t.game || '/' || t.market as name,
      case when h.table_id is null then 'a head' else 'a palette with the id ' || h.palette end as expected,
      'none' as found
    from tables t
    left join table_heads h on h.table_id = t.id
    left join palettes p on p.id = h.palette
    where p.id is null
      ${
        tableId === undefined
          ? tx`and (h.table_id is not null or exists (select from rounds r where r.table_id = t.id))`
          : tx`and t.id = ${tableId}`
      }
    order by t.id
    limit 1`;
  return first ?? null;
}
