import { addAccuracy } from "../../src/forecasts/accuracy/add-accuracy.ts";
import { addLateRounds, PAUSE_MS, playRounds, type Play } from "../forecasts/world.ts";
import { assignments } from "../support/assignments.ts";
import type { GivenOptions } from "../support/passes.ts";
import { tableIdOf as idOf, type World } from "./world.ts";

/** Makes the pauses of all tables so long that no machine is too slow to issue within them. */
export async function allowSlowness({ sql }: World): Promise<void> {
  await sql`update table_heads set version = version + 1, pause_ms = ${PAUSE_MS}`;
}

/** The id of a table by its name, `house/game/market`. */
export const tableIdOf = ({ sql }: World, name: string): Promise<number> => idOf(sql, name);

/** Options of a response after which nothing may be issued. */
export const NO_SET: GivenOptions = { at: { mayIssue: false } };

/** Adds rounds as one response to a poll, and notifies the API. */
export async function play(
  world: World,
  table: string,
  rounds: readonly (Play | number)[],
  options: GivenOptions = {},
): Promise<void> {
  await playRounds(world.sql, await tableIdOf(world, table), rounds, options);
  await announce(world);
}

/** Adds late rounds, and notifies the API. */
export async function playLate(world: World, table: string, roundIds: readonly string[]): Promise<void> {
  const rounds = roundIds.map((roundId) => ({ roundId, hundredths: 150 }));
  await addLateRounds(world.sql, await tableIdOf(world, table), "computed", rounds);
  await announce(world);
}

/** Adds what was settled of a house to its accuracy, and notifies the API. */
export async function score(world: World, house: string): Promise<void> {
  const { sql } = world;
  const tables = await sql<{ id: number }[]>`select id from tables where house_id = ${house}`;
  const { damaged } = await addAccuracy(
    sql,
    tables.map(({ id }) => id),
    new AbortController().signal,
  );
  if (damaged[0] !== undefined) throw new Error(damaged[0].reason);
  await announce(world);
}

/** Changes columns of a table's head, and notifies the API. */
export async function rewrite(world: World, table: string, changes: object): Promise<void> {
  const { sql } = world;
  await sql`
    update table_heads
    set ${assignments(sql, changes)}, version = version + 1, changed_at = clock_timestamp()
    where table_id = ${await tableIdOf(world, table)}`;
  await announce(world);
}

/** Tells the API to look at all tables. */
export async function announce({ sql }: World): Promise<void> {
  await sql`select pg_notify('roundhouse_published', '')`;
}
