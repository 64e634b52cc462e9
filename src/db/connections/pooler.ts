import pg from "pg";
import { UsageError } from "../../errors.ts";
import { withoutPassword } from "../../log.ts";
import { LATE, valueOrLate } from "../../within.ts";

/** A pooler lends the connection that was returned last, so the first check detects it unless many others are active. */
const ATTEMPTS = 5;
/** A pooler with no connection to spare lets us wait: then it keeps them for their clients, and what we hold is ours. */
const RESPONSE_TIMEOUT_MS = 2_000;

/** What is between us and a database. */
export type Between = "nothing" | "sessions" | "transactions";

/**
 * Detects a pooler in front of a database, and whether it lends its connections for sessions or for transactions.
 *
 * A pooler reports another process id to a client than the server has, since the id is for cancelling statements. If it
 * lends connections for transactions, two clients get the same one, or one client gets two.
 * @throws the driver's error if it cannot be reached.
 */
export async function detectPooler(url: string): Promise<Between> {
  const [one, other] = [open(url), open(url)];
  try {
    await one.connect();
    const lent = await backendOf(one);
    if (lent === reportedIdOf(one)) return "nothing";
    if ((await valueOrLate(RESPONSE_TIMEOUT_MS, other.connect())) === LATE) return "sessions";
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const theirs = await valueOrLate(RESPONSE_TIMEOUT_MS, backendOf(other));
      if (theirs === LATE) return "sessions";
      if (theirs === lent || (await backendOf(one)) !== lent) return "transactions";
    }
    return "sessions";
  } finally {
    await valueOrLate(RESPONSE_TIMEOUT_MS, Promise.all([one.end(), other.end()]));
  }
}

/**
 * Refuses a URL behind a transaction pooler: LISTEN, migrations and prepared statements need a session.
 * @throws UsageError that names the setting to change.
 */
export async function requireSession(url: string): Promise<void> {
  if ((await detectPooler(url)) !== "transactions") return;
  throw new UsageError(
    `the database ${withoutPassword(url)} is behind a pooler that lends its connections for one transaction at a time, and LISTEN and migrations need a session; set DATABASE_DIRECT_URL to the database itself, and let DATABASE_URL lead through the pooler`,
  );
}

function open(url: string): pg.Client {
  const client = new pg.Client({
    connectionString: url,
    application_name: "roundhouse look",
    connectionTimeoutMillis: 5_000,
  });
  client.on("error", () => undefined); // the statement that waits for a result fails with it
  return client;
}

async function backendOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]?.pid ?? 0;
}

/** The process id that the server or a pooler reported when the connection began; the types do not list it. */
function reportedIdOf(client: pg.Client): unknown {
  return "processID" in client ? client.processID : null;
}
