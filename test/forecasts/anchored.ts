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
        forecast_id: idOf(forecast),
        hour: hourOf(forecast.hoursAgo),
        hash: hashOf(forecast),
      }));
      await sql.begin(async (tx) => {
        await tx`set local session_replication_role = replica`;
        await tx`
          insert into forecasts (
            table_id, seq, forecast_id, model, feature, issued_at, issue_hour, cutoff_seq, cutoff_round_id,
            history_hash, horizon, p_ppm, base_ppm, prev_hash, hash
          )
          select
            table_id, seq, forecast_id, 'k7@1', 'next_color', hour, hour, seq, '', '', 1, '{1000000}', '{1000000}', '',
            hash
          from jsonb_to_recordset(${tx.json(rows)}) as x (
            table_id integer, seq bigint, forecast_id text, hour timestamptz, hash text
          )`;
      });
    },
  };
}
