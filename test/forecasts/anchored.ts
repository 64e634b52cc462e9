import { createHash } from "node:crypto";
import { onTestFinished } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { applyHouses } from "../../src/houses/apply-store.ts";
import { createDatabase } from "../support/database.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";

/** Tables in the order of their names as text; it is neither that of their ids nor that of house, game and market. */
export const TABLES = ["a-b/crash/global", "a/crash/eu", "a/crash/eu-2", "a/dice/global", "b/crash/global"] as const;

/** A forecast that stands for one of which only its place, its hour and its hash matter. */
export interface Saved {
  table: string;
  seq: number;
  /** Whole hours before the one that runs; from 2 on it is closed, whatever the minute. */
  hoursAgo: number;
}

/** Tables that were forecast in hours that are long over. */
export interface AnchoredWorld {
  sql: Sql;
  url: string;
  /** The beginning of an hour, so many before the one that ran when this world was made. */
  hourOf(hoursAgo: number): string;
  /** Saves forecasts as they may stand, without the trigger that would not believe them. */
  save(forecasts: readonly Saved[]): Promise<void>;
  /** Ids by name. */
  tableIds: Map<string, number>;
  idOf(forecast: Pick<Saved, "table" | "seq">): string;
}

/** The hash of such a forecast. */
export function hashOf({ table, seq }: Pick<Saved, "table" | "seq">): string {
  return createHash("sha256").update(`${table} ${seq}`).digest("hex");
}

/** Makes a world in a database of its own, which is gone after the test. */
export async function createAnchoredWorld(): Promise<AnchoredWorld> {
  const database = await createDatabase();
  const sql = connect(database.url, { name: "test", max: 6 });
  onTestFinished(async () => {
    await sql.end({ timeout: 5 });
    await database.drop();
  });
  const houses = Object.entries(Object.groupBy(TABLES.toReversed(), (name) => name.split("/")[0] ?? ""));
  await applyHouses(
    sql,
    houses.map(([id, names]) =>
      houseEntry({
        id,
        tables: names?.map((name) => tableEntry({ game: name.split("/")[1], market: name.split("/")[2] })),
      }),
    ),
  );
  const tables = await sql<{ id: number; name: string }[]>`
    select id, house_id || '/' || game || '/' || market as name
    from tables`;
  const tableIds = new Map(tables.map(({ id, name }) => [name, id]));
  const [now] = await sql<{ hour: Date }[]>`select date_trunc('hour', clock_timestamp(), 'UTC') as hour`;
  const running = now?.hour.getTime() ?? 0;
  const idOf = ({ table, seq }: Pick<Saved, "table" | "seq">) => `f${tableIds.get(table)}-${seq}`;
  const hourOf = (hoursAgo: number) =>
    new Date(running - hoursAgo * 3_600_000).toISOString().replace(".000Z", ".0000000Z");
  return {
    sql,
    url: database.url,
    tableIds,
    idOf,
    hourOf,
    async save(forecasts) {
      const rows = forecasts.map((forecast) => ({
        table_id: tableIds.get(forecast.table) ?? 0,
        seq: forecast.seq,
        hour: hourOf(forecast.hoursAgo),
        hash: hashOf(forecast),
      }));
      await sql.begin(async (tx) => {
        await tx`set local session_replication_role = replica`;
        await tx`
          insert into forecast_sets (
            table_id, cutoff_seq, cutoff_ordinal, first_seq, issued_at, absent_at, pause_ms, model, cutoff_round_id,
            history_hash, features, horizons, p_ppm, base_ppm, reference_ppm, ends, prev_hash, hashes
          )
          select
            table_id, seq, seq, seq, hour, hour, 5000, 'k7@1', '', decode(hash, 'hex'), '{0}', '{1}', '{500000,500000}',
            '{500000,500000}', array_fill(500000, array[6]), array_fill(0, array[6]), decode(hash, 'hex'),
            decode(hash, 'hex')
          from jsonb_to_recordset(${tx.json(rows)}) as x (table_id integer, seq bigint, hour timestamptz, hash text)`;
        await tx`
          update table_heads h
          set
            version = version + 1,
            first_forecast_at = least(h.first_forecast_at, s.first),
            set_seq = greatest(h.set_seq, s.last)
          from (
            select table_id, min(issued_at) as first, max(cutoff_seq) as last
            from forecast_sets
            group by table_id
          ) s
          where h.table_id = s.table_id`;
      });
    },
  };
}
