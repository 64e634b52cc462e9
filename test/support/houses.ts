import type { HouseEntry } from "../../src/config.ts";
import type { Sql } from "../../src/db/client.ts";
import { houseSettings } from "../../src/houses/settings.ts";

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

/** Empties what polling and configuration write, ids counted from 1 again: many times faster than to truncate partitions. */
export async function forgetHouses(sql: Sql): Promise<void> {
  await sql.begin((tx) =>
    tx.unsafe(`
      -- the check whether a revision still names a round takes half a millisecond for each one deleted
      set local session_replication_role = replica;
      delete from payloads;
      delete from payloads_kept;
      delete from polls;
      delete from poll_failures;
      delete from quarantine;
      delete from notices;
      delete from alerts;
      delete from reading_memories;
      delete from house_audits;
      delete from rounds;
      delete from round_cells;
      delete from circuit_changes;
      delete from request_budgets;
      delete from published_now;
      delete from feeds;
      delete from poll_leases;
      delete from tables;
      delete from houses;
      alter table tables alter column id restart;
      alter sequence payload_ids restart`),
  );
}
