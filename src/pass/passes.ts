import pLimit, { type LimitFunction } from "p-limit";
import type { Pipeline, Queryable } from "../db/client.ts";
import { reasonOf } from "../errors.ts";
import { createLeaseTaker, type TakeLease } from "../houses/polling/lease-store.ts";
import { createPollRoom, type PollRoom } from "../houses/polling/poll-room.ts";
import type { LockTimeout } from "../tables/heads-store.ts";
import { createProver, type Prover } from "../houses/fairness/prove.ts";
import { Slices } from "../slices.ts";
import { isOwnFault } from "../rounds/read-response.ts";
import { countTables, loadTables, type StoredTable } from "./stores/load-store.ts";
import { listReplayRows } from "./stores/replay-store.ts";
import type { PassState } from "./compute/state.ts";
import { States } from "./states.ts";
import { stateOf } from "./compute/stored-state.ts";
import { createWriter, type Writer } from "./writer.ts";

/** What a worker process needs for passes; one for all of its jobs. */
export interface Passes {
  pipeline: Pipeline;
  prover: Prover;
  room: PollRoom;
  takeLease: TakeLease;
  states: States;
  /** Tables that could not be loaded, by id. */
  damaged: Map<number, DamagedTable>;
  /** Runs large loads one after the other. */
  inTurn: LimitFunction;
  write: Writer;
  /** The number of tables of all houses, at most a minute old. */
  countTables: () => Promise<number>;
}

/** How long the number of tables is cached. */
const COUNT_EVERY_MS = 60_000;

/** Creates what a worker needs for passes. */
export function createPasses(pipeline: Pipeline): Passes {
  let counted: { tables: number; at: number } | null = null;
  return {
    pipeline,
    prover: createProver(),
    room: createPollRoom(),
    takeLease: createLeaseTaker(pipeline),
    states: new States(),
    damaged: new Map(),
    inTurn: pLimit(1),
    write: createWriter(pipeline),
    async countTables() {
      if (counted === null || performance.now() - counted.at > COUNT_EVERY_MS)
        counted = { tables: await countTables(pipeline), at: performance.now() };
      return counted.tables;
    },
  };
}

/** Tables per load: their rounds and sets are in memory meanwhile. */
const LOADED_AT_ONCE = 100;
/** Larger loads run one house after the other, so that connections stay free for small houses. */
const LOADED_IN_PARALLEL = 10;

/** A table whose stored rows yield no valid state. */
export interface DamagedTable {
  name: string;
  reason: string;
  /** Of the head that was read. */
  version: bigint;
  /** Whether this process raised an alert. */
  isAlerted: boolean;
}

/**
 * Rebuilds the states of tables from stored rows and from older cached states, and caches them. Waits for passes of any
 * process that are being written. Skips tables without a head, those that another session keeps locked, and damaged ones,
 * whose reason is cached.
 */
export async function loadStates(
  passes: Pick<Passes, "pipeline" | "states" | "damaged" | "inTurn">,
  tableIds: readonly number[],
  lockTimeout: LockTimeout = "4s",
): Promise<Map<number, PassState>> {
  const loaded = new Map<number, PassState>();
  const slices = new Slices();
  for (let first = 0; first < tableIds.length; first += LOADED_AT_ONCE) {
    const some = tableIds.slice(first, first + LOADED_AT_ONCE);
    const load = () => loadTables(passes.pipeline, some, lockTimeout);
    for (const table of await (some.length > LOADED_IN_PARALLEL ? passes.inTurn(load) : load())) {
      await slices.next();
      const state = await stateOrDamage(passes, table);
      if (state !== null) loaded.set(table.tableId, state);
    }
  }
  return loaded;
}

async function stateOrDamage(
  { pipeline, states, damaged }: Pick<Passes, "pipeline" | "states" | "damaged">,
  table: StoredTable,
): Promise<PassState | null> {
  const { tableId, house, game, market, version } = table;
  try {
    await loadRest(pipeline, table);
    const state = stateOf(table, states.get(tableId));
    states.keep(state);
    damaged.delete(tableId);
    return state;
  } catch (error) {
    if (!isOwnFault(error)) throw error;
    damaged.set(tableId, {
      name: `${house}/${game}/${market}`,
      reason: reasonOf(error),
      version,
      isAlerted: damaged.get(tableId)?.isAlerted ?? false,
    });
    states.drop([tableId]);
    return null;
  }
}

/** Reads the rounds up to the head that {@link loadTables} left out: while settling is paused, sets stay open for many rounds. */
export async function loadRest(sql: Queryable, table: StoredTable): Promise<void> {
  const { tableId, head, replay } = table;
  const snapshotSeq = table.snapshot?.seq ?? 0n;
  for (let isWhole = table.isWhole; !isWhole;) {
    const rows = await listReplayRows(sql, tableId, { afterSeq: replay.at(-1)?.seq ?? 0n, snapshotSeq });
    const older = rows.filter(({ seq }) => seq <= head.lastSeq);
    replay.push(...older);
    isWhole = older.length === 0 || older.at(-1)?.seq === head.lastSeq;
  }
}
