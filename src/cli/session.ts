import { loadSettings, type Settings } from "../config/environment.ts";
import type { Sql } from "../db/client.ts";
import { requireSchema } from "../db/migrate.ts";
import { identityOf } from "../db/facts.ts";
import { requireSession } from "../db/connections/pooler.ts";
import { withConnections } from "../db/with-connections.ts";
import { readRunFile, type RunFacts } from "../embedded/run-file.ts";
import { reasonOf, UsageError } from "../errors.ts";
import { withoutPassword } from "../log.ts";
import { say } from "./output.ts";

/**
 * The servers of a command: the configured ones, else those of the instance that runs on DATA_DIR. If one URL is set, the
 * other is the instance's only if it uses the same server: a database belongs to one Redis.
 */
export interface Found {
  settings: Settings;
  databaseUrl: string | undefined;
  redisUrl: string | undefined;
  /** The instance that runs on DATA_DIR; null if there is none. */
  running: RunFacts | null;
}

/** Finds the servers. If the run file of a crashed instance is left, it is skipped with one line. */
export async function findServers(): Promise<Found> {
  const settings = loadSettings();
  const { DATABASE_URL, REDIS_URL, DATA_DIR } = settings;
  // With both URLs set, run.json is not used, so an unreadable one must not fail the command.
  const facts = DATABASE_URL === undefined || REDIS_URL === undefined ? await readRunFile(DATA_DIR) : null;
  if (facts !== null && "dead" in facts) {
    say(`the roundhouse that ran on ${DATA_DIR} (pid ${facts.dead}) is gone; the next start cleans up after it`);
  }
  const running = facts === null || "dead" in facts ? null : facts;
  const isSame =
    running !== null &&
    (DATABASE_URL === undefined || DATABASE_URL === running.database_url) &&
    (REDIS_URL === undefined || REDIS_URL === running.redis_url);
  return {
    settings,
    databaseUrl: DATABASE_URL ?? (isSame ? running.database_url : undefined),
    redisUrl: REDIS_URL ?? (isSame ? running.redis_url : undefined),
    running,
  };
}

/** What a command's work receives. */
export interface Session extends Found {
  sql: Sql;
  databaseUrl: string;
}

/**
 * Runs a command's work on the database of DATABASE_URL or of the running instance, and closes the connections afterwards.
 * @throws Error if nothing runs and no URL is set, or if the database cannot be reached; UsageError if its schema differs.
 */
export async function withDatabase<Result>(
  work: (session: Session) => Promise<Result>,
  options: { patient?: boolean } = {},
): Promise<Result> {
  const found = await findServers();
  const { settings, databaseUrl } = found;
  if (databaseUrl === undefined) throw new Error(missingText("DATABASE_URL", found));
  const patient = options.patient === true;
  const directUrl = await findDirectUrl(settings, databaseUrl, { needsPooler: !patient });
  await requireDatabase(directUrl);
  // the pooler decides the statement timeout, so long statements bypass it
  return withConnections(
    patient ? directUrl : databaseUrl,
    {
      name: "command",
      max: 2,
      use: patient ? "bulk" : "long",
      pooled: !patient && settings.DATABASE_DIRECT_URL !== undefined,
    },
    (sql) => work({ ...found, sql, databaseUrl }),
  );
}

/** The Redis of a session. @throws Error if there is none. */
export function requireRedis(found: Found): string {
  if (found.redisUrl === undefined) throw new Error(missingText("REDIS_URL", found));
  return found.redisUrl;
}

/**
 * The URL without a pooler: DATABASE_DIRECT_URL, else DATABASE_URL. Without `needsPooler` a database that cannot be reached
 * causes only a warning.
 * @throws UsageError if the two lead to different databases, Error if one cannot be reached.
 */
export async function findDirectUrl(
  { DATABASE_DIRECT_URL: directUrl }: Settings,
  databaseUrl: string,
  { needsPooler = true } = {},
): Promise<string> {
  if (directUrl === undefined) return databaseUrl;
  const problem = await findOtherDatabase(databaseUrl, directUrl).catch((error: unknown) => {
    if (needsPooler) throw error;
    say(`DATABASE_DIRECT_URL is not compared with DATABASE_URL: ${reasonOf(error)}`);
    return null;
  });
  if (problem !== null) throw new UsageError(`DATABASE_DIRECT_URL: ${problem}`);
  return directUrl;
}

/** How the database of DATABASE_DIRECT_URL differs from the one of DATABASE_URL; null if they are the same. */
export async function findOtherDatabase(databaseUrl: string, directUrl: string): Promise<string | null> {
  const expected = await reaching(databaseUrl, () => identityOf(databaseUrl, { pooled: true }));
  const found = await reaching(directUrl, () => identityOf(directUrl));
  if (found === expected) return null;
  return `expected the database of DATABASE_URL, ${expected}, found ${found}; set both to the same database`;
}

/**
 * Refuses a database that cannot be used; pass the URL that bypasses a pooler.
 * @throws Error if it cannot be reached, UsageError if its schema is another version's or the URL leads through a
 * transaction pooler.
 */
export function requireDatabase(databaseUrl: string): Promise<void> {
  return reaching(databaseUrl, async () => {
    await requireSession(databaseUrl);
    await requireSchema(databaseUrl);
  });
}

/** Runs the first statement on a database. @throws Error that names the database if it cannot be reached. */
export async function reaching<Result>(databaseUrl: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new Error(
      `the database ${withoutPassword(databaseUrl)} cannot be used: start it, or set DATABASE_URL to one that runs`,
      { cause: error },
    );
  }
}

function missingText(variable: "DATABASE_URL" | "REDIS_URL", { running }: Found): string {
  if (running !== null) {
    const other = variable === "REDIS_URL" ? "DATABASE_URL" : "REDIS_URL";
    return `expected the ${other} of the roundhouse that runs on DATA_DIR (pid ${running.pid}), found another; set ${variable} too, or neither`;
  }
  return `nothing is running here; start it with \`npm start\`, or set ${variable} (DATA_DIR is where a running one is looked for)`;
}
