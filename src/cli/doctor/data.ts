import { listForeign } from "../../backup/store.ts";
import type { Sql } from "../../db/client.ts";
import { withConnections } from "../../db/with-connections.ts";
import {
  listFailedPayloads,
  listMissingPartitions,
  listStrayHeads,
  readDatabaseSize,
} from "../../housekeeping/health-store.ts";
import { listUnscored } from "../../forecasts/score/unscored-store.ts";
import { type Finding, ok } from "./finding.ts";

/** One line names at most this many tables; more are counted. */
const MOST_NAMED = 5;

/**
 * Checks that heads match their rows, stored payloads are readable, partitions exist, ended forecasts are scored and all
 * tables are ours, and states the size of the database. Reads only.
 */
export async function checkData(databaseUrl: string): Promise<Finding[]> {
  return withConnections(databaseUrl, { name: "doctor", max: 1 }, async (sql) => [
    await checkHeads(sql),
    await checkPayloads(sql),
    await checkPartitions(sql),
    await checkScores(sql),
    await checkForeign(sql),
    await stateSize(sql),
  ]);
}

async function checkHeads(sql: Sql): Promise<Finding> {
  const stray = await listStrayHeads(sql, MOST_NAMED);
  return finding("heads", {
    problems: stray.map(
      ({ table, expected, found }) => `${table}: the head is at ${expected}, its rows end at ${found}`,
    ),
    fine: "each names the newest round and forecast of its table",
    status: "fail",
    advice: "rows were written or deleted outside the program: run `roundhouse verify`, then restore a backup",
  });
}

async function checkPayloads(sql: Sql): Promise<Finding> {
  const failed = await listFailedPayloads(sql);
  return finding("payloads", {
    problems: failed
      .slice(0, MOST_NAMED)
      .map(({ table, payloads, oldestAt, error }) => `${table}: ${payloads} unread since ${oldestAt} (${error})`),
    more: failed.length - MOST_NAMED,
    fine: "none is unread with an error",
    status: "warn",
    advice: "no forecast is issued for these tables until their payloads are read; see `roundhouse payload list`",
  });
}

async function checkPartitions(sql: Sql): Promise<Finding> {
  return finding("partitions", {
    problems: (await listMissingPartitions(sql)).map((name) => `${name} is missing`),
    fine: "today's and tomorrow's exist",
    status: "fail",
    advice: "run `roundhouse migrate`, and check that the queue housekeep runs",
  });
}

async function checkScores(sql: Sql): Promise<Finding> {
  const unscored = await listUnscored(sql);
  return finding("scores", {
    problems: unscored.slice(0, MOST_NAMED).map(({ table, since }) => `${table}: none since ${since}`),
    more: unscored.length - MOST_NAMED,
    fine: "every forecast that ended more than five minutes ago has one",
    status: "fail",
    advice: "see whether the queue score-accuracy is paused or fails: `roundhouse queue list`",
  });
}

async function checkForeign(sql: Sql): Promise<Finding> {
  const foreign = await listForeign(sql);
  return finding("foreign tables", {
    problems: foreign.slice(0, MOST_NAMED),
    more: foreign.length - MOST_NAMED,
    fine: "none is next to ours",
    status: "warn",
    advice: "`roundhouse backup` leaves these out: move them to another database, or back them up by pg_dump",
  });
}

/** The disk of PostgreSQL may be on another machine, so its free space is unknown. */
async function stateSize(sql: Sql): Promise<Finding> {
  const { all, permanent } = await readDatabaseSize(sql);
  const found = `${gigabytes(all)} GB, ${gigabytes(permanent)} of them rounds, forecasts, scores and the log, which are kept permanently`;
  return ok("database size", found);
}

function gigabytes(bytes: number): string {
  return (bytes / 1e9).toFixed(2);
}

function finding(
  check: string,
  given: { problems: string[]; more?: number; fine: string; status: "warn" | "fail"; advice: string },
): Finding {
  const { problems, more = 0, fine, status, advice } = given;
  if (problems.length === 0) return ok(check, fine);
  return { check, status, found: [...problems, ...(more > 0 ? [`and ${more} more`] : [])].join("; "), advice };
}
