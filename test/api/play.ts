import { issueForHouse } from "../../src/forecasts/issue/issue.ts";
import { publishHouse } from "../../src/forecasts/accuracy/publish.ts";
import { scoreHouse } from "../../src/forecasts/score/score.ts";
import { addRounds, PAUSE_MS, type Play } from "../forecasts/world.ts";
import type { World } from "./world.ts";
import { assignments } from "../support/assignments.ts";

const RUN = { signal: new AbortController().signal, committed: () => undefined };

/** Makes the pauses of all tables so long that no machine is too slow to issue within them. */
export async function allowSlowness({ sql }: World): Promise<void> {
  await sql`update tables set pause_ms = ${PAUSE_MS}`;
}

/** The id of a table by its name, `house/game/market`. */
export async function tableIdOf({ sql }: World, name: string): Promise<number> {
  const [table] = await sql<{ id: number }[]>`
    select id
    from tables
    where house_id || '/' || game || '/' || market = ${name}`;
  if (table === undefined) throw new Error(`expected the table ${name}, found none`);
  return table.id;
}

/** Takes in rounds as one answer would bring them, and tells the API. */
export async function play(world: World, table: string, rounds: readonly (Play | number)[]): Promise<void> {
  const id = await tableIdOf(world, table);
  await world.sql.begin(async (tx) => {
    await addRounds(tx, id, rounds);
    await tx`
      update published_now p
      set
        last_polled_round_at = t.last_polled_round_at,
        updated_at = clock_timestamp()
      from tables t
      where t.id = ${id}
        and p.table_id = t.id`;
  });
  await announce(world);
}

/** Learns what is new of a house, issues what follows, and tells the API. */
export async function issue(world: World, house: string): Promise<void> {
  await issueForHouse(world.sql, house, RUN);
  await announce(world);
}

/** Scores what is due of a house, publishes its accuracy whether it is due or not, and tells the API. */
export async function score(world: World, house: string): Promise<void> {
  const { sql } = world;
  await scoreHouse(sql, house, RUN.signal);
  await sql`update accuracy_series set due_at = now()`;
  await sql`update published_accuracy set updated_at = updated_at - interval '1 day'`;
  await publishHouse(sql, house, RUN.signal);
  await announce(world);
}

/** Writes something published by hand, so that the API sees it at its next look, and has it look. */
export async function rewrite(world: World, table: string, changes: object): Promise<void> {
  const { sql } = world;
  await sql`
    update published_now
    set ${assignments(sql, changes)}, updated_at = clock_timestamp()
    where table_id = ${await tableIdOf(world, table)}`;
  await announce(world);
}

/** Tells the API that something was published. */
export async function announce({ sql }: World): Promise<void> {
  await sql`select pg_notify('roundhouse_published', '')`;
}
