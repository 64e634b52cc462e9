import { readdirSync } from "node:fs";
import { runner } from "node-pg-migrate";
import type pg from "pg";
import { UsageError } from "../errors.ts";
import { InUseError, WAIT_FOR_TABLE_MS, whileInUse } from "./connections/while-in-use.ts";
import { isLockError } from "./errors.ts";
import { withPgClient } from "./connections/pg-client.ts";
import { applyRoles } from "./roles/roles.ts";

const SQL_FOLDER = new URL("../../sql", import.meta.url).pathname;
const HISTORY = "migrations";
const LOCK = 0x7268_0001; // "rh", 1
/** How long a migration waits for another one. */
const WAIT_FOR_OTHER_MS = 60_000;
/** A file may rewrite a large table. */
const MIGRATION_MS = 6 * 3_600_000;

/**
 * Brings a database to the newest schema: each file of sql/ once, in order, all in one transaction per file.
 *
 * It waits only briefly for a table that is in use, and repeatedly, so that readers do not wait behind a file for long.
 *
 * Any number of processes may call this at the same time: they queue behind an advisory lock of ours for up to a minute,
 * or `waitForOtherMs` (the lock of the library throws immediately). Also applies the grants of each role, and creates the day partitions of the
 * next days, so that a new database can store payloads before housekeep runs. Needs a session: behind a pooler, give the
 * direct URL. `upTo` are the first names of {@link migrationNames}; with it only these are applied, which is the schema of
 * an older backup.
 * @returns the names of the files that this call applied.
 * @throws UsageError when the database is of 0.1.0 or an earlier version, or has migrations that this version does not know.
 */
export async function migrate(
  databaseUrl: string,
  say: (line: string) => void = () => undefined,
  {
    upTo = migrationNames(),
    waitForOtherMs = WAIT_FOR_OTHER_MS,
    waitForTableMs,
  }: { upTo?: readonly string[]; waitForOtherMs?: number; waitForTableMs?: number } = {},
): Promise<string[]> {
  return withPgClient(
    databaseUrl,
    "migrate",
    async (client) => {
      await client.query(`set lock_timeout = ${waitForOtherMs}`);
      await lockMigrations(client);
      await client.query(`set lock_timeout = ${WAIT_FOR_TABLE_MS}`);
      const before = await appliedMigrations(client);
      refuseOther(otherSchema(before));
      await whileInUse(async () => {
        await client.query("rollback"); // the library leaves the transaction of a file that failed open
        const count = upTo.length - (await appliedMigrations(client)).length;
        if (count <= 0) return;
        await runner({
          dbClient: client,
          dir: SQL_FOLDER,
          direction: "up",
          count,
          migrationsTable: HISTORY,
          noLock: true,
          log: () => undefined,
          logger: { debug: () => undefined, info: () => undefined, warn: say, error: say },
        });
      }, say);
      const made = (await appliedMigrations(client)).slice(before.length);
      for (const name of made) say(`migrated to ${name}`);
      await applyRoles(client, say);
      await makeDayPartitions(client, say, waitForTableMs);
      return made;
    },
    { deadlineMs: MIGRATION_MS },
  );
}

/** A backup may read a table for longer than this waits: a worker makes the partitions that are missing. */
async function makeDayPartitions(client: pg.Client, say: (line: string) => void, waitForTableMs?: number) {
  try {
    await whileInUse(
      () => client.query("select make_day_partitions((now() at time zone 'UTC')::date - 1, 5)"),
      say,
      waitForTableMs,
    );
  } catch (error) {
    if (!(error instanceof InUseError)) throw error;
    say("the partitions of the next days are not made yet, because their table is in use: a worker makes them");
  }
}

/** @throws Error if another migration keeps the lock for longer than the lock timeout. */
async function lockMigrations(client: pg.Client): Promise<void> {
  try {
    await client.query("select pg_advisory_lock($1)", [LOCK]);
  } catch (error) {
    if (!isLockError(error)) throw error;
    throw new Error("another migration is running; wait for it and try again", { cause: error });
  }
}

/** Why a version cannot use the schema of a database, and what to do. */
export interface OtherSchema {
  found: string;
  advice: string;
}

/** The migrations that a database lacks, by name, and why this version can never use its schema; null when it can. */
export async function schemaState(databaseUrl: string): Promise<{ pending: string[]; other: OtherSchema | null }> {
  const applied = await withPgClient(databaseUrl, "migrate", appliedMigrations);
  return { pending: migrationNames().filter((name) => !applied.includes(name)), other: otherSchema(applied) };
}

/**
 * Refuses to continue when the schema is not this version's: older (run migrate) or newer (run a newer version).
 * @throws UsageError saying which and what to do.
 */
export async function requireSchema(databaseUrl: string): Promise<void> {
  const { pending, other } = await schemaState(databaseUrl);
  refuseOther(other);
  if (pending.length > 0) {
    throw new UsageError(`the database lacks ${pending.join(", ")}; run \`roundhouse migrate\` first`);
  }
}

function otherSchema(applied: readonly string[]): OtherSchema | null {
  const ours = migrationNames();
  const [first] = ours;
  if (applied.length > 0 && applied[0] !== first) {
    return {
      found: `expected a schema that begins with ${first}, found one of 0.1.0 or an earlier version that begins with ${applied[0]}`,
      advice:
        "make a new database, and carry the rounds over with `export rounds` of the old version and `import` of this one",
    };
  }
  const unknown = applied.filter((name) => !ours.includes(name));
  if (unknown.length === 0) return null;
  return {
    found: `the database is newer than this version: it has ${unknown.join(", ")}`,
    advice: "start the version that made it, or a newer one",
  };
}

function refuseOther(other: OtherSchema | null): void {
  if (other !== null) throw new UsageError(`${other.found}; ${other.advice}`);
}

/** The names of all migrations of this version, in order. */
export function migrationNames(): string[] {
  return readdirSync(SQL_FOLDER)
    .filter((file) => file.endsWith(".sql"))
    .map((file) => file.slice(0, -".sql".length))
    .toSorted();
}

async function appliedMigrations(client: pg.Client): Promise<string[]> {
  const { rows: found } = await client.query<{ exists: boolean }>(
    `select to_regclass('${HISTORY}') is not null as exists`,
  );
  if (found[0]?.exists !== true) return [];
  const { rows } = await client.query<{ name: string }>(`select name from ${HISTORY} order by id`);
  return rows.map(({ name }) => name);
}
