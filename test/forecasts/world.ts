import { randomBytes } from "node:crypto";
import { onTestFinished } from "vitest";
import { addAccuracy } from "../../src/forecasts/accuracy/add-accuracy.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { addRounds, loadState, lockState, withStored } from "../../src/pass/add.ts";
import { findTime } from "../../src/pass/stores/payload-store.ts";
import { refusalOf } from "../../src/pass/stores/write-store.ts";
import { reviseScores } from "../../src/pass/stores/revise-scores-store.ts";
import { fromDatabase } from "../../src/pass/compute/times.ts";
import { createDatabase } from "../support/database.ts";
import { whenFileEnds } from "../support/file-end.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import { checkedItem, givePasses, type GivenOptions, type GivenRound } from "../support/passes.ts";

/** A pause so long that no machine is too slow for it. */
export const PAUSE_MS = 600_000;

/** A round to add; without an id it counts on from the newest, one is missing before it when it is `afterGap`. */
export interface Play extends GivenRound {
  hundredths: number;
  afterGap?: boolean;
}

/** One house, next to those of earlier tests in the same file. */
export interface World {
  sql: Sql;
  url: string;
  house: string;
  /** Ids of its tables in their order. */
  tableIds: number[];
  /** The first table, and its name. */
  tableId: number;
  tableName: string;
  /** Adds rounds as one response to a poll does: what ends is settled, and a set follows the newest. */
  play(rounds: readonly (Play | number)[], tableId?: number, options?: GivenOptions): Promise<void>;
  /** Adds rounds that no poll brought. */
  addLate(
    from: "import" | "computed",
    rounds: readonly (GivenRound & { roundId: string })[],
    tableId?: number,
  ): Promise<void>;
  /** Voids what corrections touched and adds what was issued and settled to the accuracy of all tables. */
  add(): Promise<void>;
}

export interface WorldOptions {
  tables?: Record<string, unknown>[];
  house?: Record<string, unknown>;
  connections?: number;
  /** For a test that changes the schema or the whole of a table. */
  ownDatabase?: boolean;
  /** Told what to do when the world is no longer needed; default: after the test. */
  whenDone?: (cleanUp: () => Promise<void>) => void;
}

let shared: ReturnType<typeof createDatabase> | undefined;

/** The database of the test file. */
function sharedDatabase(): ReturnType<typeof createDatabase> {
  if (shared === undefined) {
    const created = createDatabase();
    shared = created;
    whenFileEnds(async () => {
      shared = undefined;
      await (await created).drop();
    });
  }
  return shared;
}

/** Makes a house in the database of the test file, or in one that is gone after the test. */
export async function createWorld(options: WorldOptions = {}): Promise<World> {
  const database = await (options.ownDatabase === true ? createDatabase() : sharedDatabase());
  const sql = connect(database.url, { name: "test", max: options.connections ?? 4 });
  const whenDone = options.whenDone ?? onTestFinished;
  whenDone(async () => {
    await sql.end({ timeout: 5 });
    if (options.ownDatabase === true) await database.drop();
  });
  const entry = houseEntry({
    id: `house-${randomBytes(4).toString("hex")}`,
    tables: (options.tables ?? [{}]).map((changes, index) =>
      tableEntry({ market: `m${index}`, house_edge: 0.01, pause_ms: PAUSE_MS, ...changes }),
    ),
    ...options.house,
  });
  await applyHouses(sql, [entry]);
  const tables = await sql<{ id: number; name: string }[]>`
    select id, house_id || '/' || game || '/' || market as name
    from tables
    where house_id = ${entry.settings.id}
    order by position`;
  const [first] = tables;
  if (first === undefined) throw new Error("expected a table, made none");
  const tableIds = tables.map(({ id }) => id);
  return {
    sql,
    url: database.url,
    house: entry.settings.id,
    tableIds,
    tableId: first.id,
    tableName: first.name,
    play: (rounds, tableId = first.id, given = {}) => playRounds(sql, tableId, rounds, given),
    addLate: (from, rounds, tableId = first.id) => addLateRounds(sql, tableId, from, rounds),
    async add() {
      for (const id of tableIds) await sql.begin((tx) => reviseScores(tx, id));
      const { damaged } = await addAccuracy(sql, tableIds, new AbortController().signal);
      if (damaged[0] !== undefined) throw new Error(`table ${damaged[0].tableId} is damaged: ${damaged[0].reason}`);
    },
  };
}

/** Adds rounds as one response to a poll does; see {@link World.play}. */
export async function playRounds(
  sql: Sql,
  tableId: number,
  rounds: readonly (Play | number)[],
  given: GivenOptions = {},
): Promise<void> {
  for (;;) {
    const from = await loadState(sql, tableId);
    const options = { from, atOnce: rounds.length, ...given };
    try {
      await givePasses(sql, { id: tableId }, numbered(rounds, from.head.newestRoundId), options);
      return;
    } catch (error) {
      if (refusalOf(error) !== "moved") throw error; // another was first, as between two workers
    }
  }
}

/** Adds rounds that no poll brought. */
export async function addLateRounds(
  sql: Sql,
  tableId: number,
  from: "import" | "computed",
  rounds: readonly (GivenRound & { roundId: string })[],
): Promise<void> {
  await sql.begin(async (tx) => {
    const state = await lockState(tx, tableId);
    const receivedAt = fromDatabase((await findTime(tx)).now);
    const items = rounds.map((round) => checkedItem(round));
    const read = { ok: true, items, feedOrder: "auto", refusedByAdapter: 0, isPage: false, anchor: null } as const;
    const added = { from, requestedAt: null, receivedAt, manner: "late", payload: null, read } as const;
    await addRounds(tx, state, await withStored(tx, state, added));
  });
}

/** Gives each round without an id the next one. */
function numbered(rounds: readonly (Play | number)[], newest: string | null): GivenRound[] {
  let last = newest ?? "1000";
  return rounds.map((given) => {
    const { afterGap = false, ...round } = typeof given === "number" ? { hundredths: given } : given;
    if (round.roundId === undefined) last = String(BigInt(last) + (afterGap ? 2n : 1n));
    else last = round.roundId;
    return { ...round, roundId: last };
  });
}
