import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../../src/db/client.ts";

/** How often it is looked. */
const LOOK_MS = 25;

/** A migration as it went: its seconds, and how long it kept readers, or writers alone, out of which tables. */
export interface Migrated {
  name: string;
  seconds: number;
  locked: { table: string; mode: "read" | "write"; seconds: number }[];
}

/** Locks that keep readers out, and those that keep writers out alone. */
const MODES: Readonly<Record<string, "read" | "write">> = {
  AccessExclusiveLock: "read",
  ExclusiveLock: "write",
  ShareRowExclusiveLock: "write",
  ShareLock: "write",
};

interface Look {
  at: number;
  applied: string[];
  locks: { table: string; mode: string }[];
}

/** Watches what migrations do to tables that were there before, until `stop`, which gives what each did, in order. */
export async function watchLocks(sql: Sql): Promise<{ stop(): Promise<Migrated[]> }> {
  const looks: Look[] = [];
  let isStopped = false;
  const tables = await sql<{ oid: number }[]>`
    select oid::integer as oid
    from pg_class
    where relkind in ('r', 'p')
      and relnamespace in ('public'::regnamespace)`;
  const known = tables.map(({ oid }) => oid);
  const watching = (async () => {
    while (!isStopped) {
      looks.push(await look(sql, known));
      await delay(LOOK_MS);
    }
    looks.push(await look(sql, known));
  })();
  return {
    async stop() {
      isStopped = true;
      await watching;
      return summarize(looks);
    },
  };
}

async function look(sql: Sql, known: readonly number[]): Promise<Look> {
  const [row] = await sql<{ applied: string[]; locks: Look["locks"] }[]>`
    select
      (select coalesce(array_agg(name order by id), '{}') from migrations) as applied,
      (
        select coalesce(jsonb_agg(distinct jsonb_build_object(
          'table', regexp_replace(c.relname, '_[0-9]+$', ''), 'mode', l.mode)), '[]')
        from pg_locks l
        join pg_stat_activity a on a.pid = l.pid
        join pg_class c on c.oid = l.relation
        where a.application_name = 'roundhouse migrate'
          and l.granted
          and l.relation::integer = any(${[...known]}::integer[])
          and l.mode in ('AccessExclusiveLock', 'ExclusiveLock', 'ShareRowExclusiveLock', 'ShareLock')
      ) as locks`;
  return { at: Date.now(), applied: row?.applied ?? [], locks: row?.locks ?? [] };
}

/** A file is at work from the look at which the one before it was applied to the one at which it is. */
function summarize(looks: readonly Look[]): Migrated[] {
  const [first] = looks;
  const last = looks.at(-1);
  if (first === undefined || last === undefined) return [];
  let beganAt = first.at;
  return last.applied.slice(first.applied.length).map((name) => {
    const endedAt = looks.find(({ applied }) => applied.includes(name))?.at ?? last.at;
    const during = looks.filter(({ at }) => at >= beganAt && at <= endedAt);
    const seconds = (endedAt - beganAt) / 1_000;
    beganAt = endedAt;
    return { name, seconds, locked: lockedIn(during) };
  });
}

function lockedIn(during: readonly Look[]): Migrated["locked"] {
  const spans = new Map<string, { from: number; to: number }>();
  for (const { at, locks } of during) {
    for (const { table, mode } of locks) {
      const key = `${table} ${MODES[mode] ?? "write"}`;
      const span = spans.get(key) ?? { from: at, to: at };
      spans.set(key, { ...span, to: at + LOOK_MS });
    }
  }
  return [...spans]
    .map(([key, { from, to }]) => {
      const [table = "", mode = ""] = key.split(" ");
      return { table, mode: mode as "read" | "write", seconds: (to - from) / 1_000 };
    })
    .toSorted((a, b) => b.seconds - a.seconds);
}
