import type { Sql, Transaction } from "../../db/client.ts";
import type { Fairness } from "../../houses/fairness/settings.ts";
import { K7_1 } from "../model/parameters.ts";
import type { Band } from "../model/table-model.ts";

/** Opens one unchanging view of the database: everything checked inside belongs to the same moment. */
export async function withSnapshot<Result>(sql: Sql, check: (tx: Transaction) => Promise<Result>): Promise<Result> {
  return sql.begin("isolation level repeatable read read only", check);
}

/** A table as it is verified. */
export interface VerifiedTable {
  id: number;
  /** `house/game/market`. */
  name: string;
  bands: Band[];
  consecutive: boolean;
  fairness: Fairness | null;
  adapter: string;
  feed: { scale?: number; instant?: (string | number)[] };
  /** What the table says of its chains: where they end, and where the forecasts began. */
  lastSeq: bigint;
  historyHash: string;
  forecastSeq: bigint;
  forecastHash: string;
  revisionHash: string;
  firstForecastAfterSeq: bigint | null;
  /** Rounds up to this seq are counted in the hour rows; null before the first score. */
  summedSeq: bigint | null;
  /** What the house declares, null where it declares nothing. */
  edge: number | null;
  /** The first calibration's or else the live state: it says with which bands and edge the table began. */
  state: Buffer | null;
}

/** The tables to verify: one where an id is given, else all. */
export async function listTablesToVerify(tx: Transaction, tableId: number | undefined): Promise<VerifiedTable[]> {
  return tx<VerifiedTable[]>`
    select
      t.id,
      t.house_id || '/' || t.game || '/' || t.market as name,
      t.colors as bands,
      t.round_ids = 'consecutive' as consecutive,
      t.settings -> 'fairness' as fairness,
      coalesce(t.settings ->> 'adapter', 'json') as adapter,
      coalesce(t.settings -> 'feed', '{}') as feed,
      t.last_seq as "lastSeq",
      t.history_hash as "historyHash",
      t.forecast_seq as "forecastSeq",
      t.forecast_hash as "forecastHash",
      t.revision_hash as "revisionHash",
      t.first_forecast_after_seq as "firstForecastAfterSeq",
      m.seq as "summedSeq",
      (t.settings ->> 'house_edge')::float8 as edge,
      coalesce(
        (
          select c.state
          from calibrations c
          where c.table_id = t.id
            and c.model = ${K7_1.name}
            and c.kind = 'rolling'
          order by c.id
          limit 1
        ),
        (select s.state from model_states s where s.table_id = t.id and s.model = ${K7_1.name})
      ) as state
    from tables t
    left join accuracy_marks m on m.table_id = t.id
    ${tableId === undefined ? tx`` : tx`where t.id = ${tableId}`}
    order by t.id`;
}

/** A round with everything that can be recomputed. */
export interface StoredRound {
  seq: bigint;
  roundId: string;
  hundredths: bigint;
  rawValue: string;
  color: string;
  source: "poll" | "history" | "computed" | "import";
  late: boolean;
  afterGap: boolean;
  proofHash: string | null;
  verified: boolean | null;
  historyHash: string;
  /** The UTC hour in which it was received. */
  receivedHour: string;
}

/** Rounds of a table after a seq, in order. */
export async function listStoredRounds(
  tx: Transaction,
  tableId: number,
  afterSeq: bigint,
  limit: number,
): Promise<StoredRound[]> {
  return tx<StoredRound[]>`
    select
      seq, round_id as "roundId", hundredths, raw_value as "rawValue", color, source, late, after_gap as "afterGap",
      proof_hash as "proofHash", verified, history_hash as "historyHash",
      utc_text(date_trunc('hour', received_at, 'UTC')) as "receivedHour"
    from rounds
    where table_id = ${tableId}
      and seq > ${afterSeq}
    order by seq
    limit ${limit}`;
}
