import type { HouseEntry } from "../../src/houses-file/load.ts";
import type { Sql } from "../../src/db/client.ts";
import { startHouse, stopHouse } from "../../src/houses/polling/control-store.ts";
import { houseSettings } from "../../src/houses/settings/settings.ts";

/** A feed as houses.yaml has it; give what matters to the test. */
export function feedEntry(changed: Record<string, unknown> = {}): Record<string, unknown> {
  return { path: "/rounds", items: "rounds", round_id: "id", multiplier: "multiplier", ...changed };
}

/** A table as houses.yaml has it; give what matters to the test. */
export function tableEntry(changed: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    game: "crash",
    market: "global",
    feed: feedEntry(),
    round_ids: "consecutive",
    colors: [{ name: "blue", below: 2 }, { name: "purple", below: 10 }, { name: "pink" }],
    ...changed,
  };
}

/** A house as it comes out of a houses file; give what matters to the test. */
export function houseEntry(changed: Record<string, unknown> = {}): HouseEntry {
  const entry = {
    id: "alpha",
    name: "Alpha",
    base_url: "http://127.0.0.1:1",
    private: true,
    tables: [tableEntry()],
    ...changed,
  };
  return { entry, settings: houseSettings.parse(entry) };
}

/** Tables that hold anything of houses: their rows go, and ids count from 1 again. */
const OF_HOUSES = [
  "payloads",
  "payloads_kept",
  "polls",
  "poll_failures",
  "quarantine",
  "conflicts",
  "gaps",
  "notices",
  "alerts",
  "house_audits",
  "log_checkpoints",
  "log_tiles",
  "log_heads",
  "log_entries",
  "logs",
  "round_revision",
  "number_resets",
  "round_cells",
  "rounds",
  "score_revisions",
  "score_sets",
  "forecast_sets",
  "model_snapshots",
  "published_readings",
  "accuracy_hours",
  "accuracy_days",
  "accuracy_periods",
  "accuracy_models",
  "accuracy_marks",
  "circuit_changes",
  "request_budgets",
  "table_heads",
  "feeds",
  "poll_leases",
  "tables",
  "houses",
];

/** Empties what polling and configuration write: many times faster than to truncate partitions. */
export async function forgetHouses(sql: Sql): Promise<void> {
  await sql.begin((tx) =>
    tx.unsafe(`
      -- foreign keys and guards that a table is append-only would refuse it
      set local session_replication_role = replica;
      ${OF_HOUSES.map((table) => `delete from ${table}`).join("; ")};
      -- not "alter table", which would let the database count as changed
      select setval(pg_get_serial_sequence('tables', 'id'), 1, false)`),
  );
}

/** Pauses a house as an operator does. */
export function pauseHouse(sql: Sql, pause: { house: string; by: string; reason: string }) {
  return sql.begin((tx) => stopHouse(tx, pause));
}

/** Polls a paused house again as an operator does. */
export function resumeHouse(sql: Sql, house: string) {
  return sql.begin((tx) => startHouse(tx, { house }));
}
