import { loadSettings, type Settings } from "../config/environment.ts";
import { connect, type Sql } from "../db/client.ts";
import { requireSchema } from "../db/migrate.ts";
import { requireSession } from "../db/pooler.ts";
import { readRunFile, type RunFacts } from "../embedded/run-file.ts";
import { UsageError } from "../errors.ts";
import { withoutPassword } from "../log.ts";
import { say } from "./output.ts";

/** Where a command finds the servers: those that were given, else those of the instance that runs on DATA_DIR. */
export interface Found {
  settings: Settings;
  databaseUrl: string | undefined;
  redisUrl: string | undefined;
  /** What runs on DATA_DIR now; null where nothing does. */
  running: RunFacts | null;
}

/** Looks where the servers are. An instance that died without a word is passed over with one line. */
export async function findServers(): Promise<Found> {
  const settings = loadSettings();
  const { DATABASE_URL, REDIS_URL, DATA_DIR } = settings;
  // With both given, nobody's run.json matters, not even one that cannot be read.
  const facts = DATABASE_URL === undefined || REDIS_URL === undefined ? await readRunFile(DATA_DIR) : null;
  if (facts !== null && "dead" in facts) {
    say(`the roundhouse that ran on ${DATA_DIR} (pid ${facts.dead}) is gone; the next start cleans up after it`);
  }
  const running = facts === null || "dead" in facts ? null : facts;
  return {
    settings,
    databaseUrl: DATABASE_URL ?? running?.database_url,
    redisUrl: REDIS_URL ?? running?.redis_url,
    running,
  };
}

/** What a command works with. */
export interface Session {
  sql: Sql;
  settings: Settings;
  databaseUrl: string;
  redisUrl: string | undefined;
}

/**
 * Runs a command's work on the database of DATABASE_URL or of the running instance, and closes the connections after it.
 * @throws Error where nothing runs and no URL is given, or where the database cannot be reached; UsageError where its schema is not ours.
 */
export async function withDatabase<Result>(
  work: (session: Session) => Promise<Result>,
  options: { patient?: boolean } = {},
): Promise<Result> {
  const { settings, databaseUrl, redisUrl } = await findServers();
  if (databaseUrl === undefined) throw new Error(nothingRuns("DATABASE_URL"));
  await requireDatabase(settings.DATABASE_DIRECT_URL ?? databaseUrl);
  const { DATABASE_DIRECT_URL: directUrl } = settings;
  const patient = options.patient === true;
  // how long a statement may take is the pooler's to say, so who needs long goes past it
  const sql = connect(patient ? (directUrl ?? databaseUrl) : databaseUrl, {
    name: "command",
    max: 2,
    use: patient ? "bulk" : "long",
    pooled: !patient && directUrl !== undefined,
  });
  try {
    return await work({ sql, settings, databaseUrl, redisUrl });
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** The Redis of a session. @throws Error where there is none. */
export function requireRedis({ redisUrl }: Pick<Session, "redisUrl">): string {
  if (redisUrl === undefined) throw new Error(nothingRuns("REDIS_URL"));
  return redisUrl;
}

/**
 * Refuses a database that cannot be used; give the way past a pooler.
 * @throws Error where it cannot be reached, UsageError where its schema is another version's or a transaction pooler
 * stands before it.
 */
export function requireDatabase(databaseUrl: string): Promise<void> {
  return reaching(databaseUrl, async () => {
    await requireSession(databaseUrl);
    await requireSchema(databaseUrl);
  });
}

/** Does the first thing that is done with a database. @throws Error that names it where it cannot be reached. */
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

function nothingRuns(variable: string): string {
  return `nothing is running here; start it with \`npm start\`, or set ${variable} (DATA_DIR is where a running one is looked for)`;
}
