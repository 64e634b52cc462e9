import { withConnections } from "../../db/with-connections.ts";
import { detectPooler } from "../../db/connections/pooler.ts";
import { reasonOf } from "../../errors.ts";
import { withoutPassword } from "../../log.ts";
import { findOtherDatabase } from "../session.ts";
import { fail, type Finding, ok, warn } from "./finding.ts";

const check = "pooler";

/**
 * Checks that `directUrl`, if set, bypasses the pooler that `databaseUrl` leads through. Null if there is no pooler, or if a
 * database cannot be reached, which another check reports.
 */
export async function checkPooler(databaseUrl: string, directUrl: string | undefined): Promise<Finding | null> {
  const own = directUrl ?? databaseUrl;
  const between = await detectPooler(own).catch(() => "nothing" as const);
  if (between === "transactions") {
    const found = `${withoutPassword(own)} leads through a pooler that lends its connections for single transactions`;
    const advice =
      "set DATABASE_DIRECT_URL to the database itself, and let DATABASE_URL lead through the pooler: LISTEN and migrations need a session";
    return fail(check, found, advice);
  }
  return directUrl === undefined ? null : checkWay(databaseUrl, directUrl);
}

/** Checks the way through the pooler, as the processes use it, and that it leads to the database itself. */
async function checkWay(url: string, directUrl: string): Promise<Finding> {
  try {
    const [row] = await withConnections(
      url,
      { name: "doctor", max: 1, pooled: true },
      (sql) => sql<{ endless: boolean }[]>`select current_setting('statement_timeout') = '0' as endless`,
    );
    const found = `DATABASE_URL ${withoutPassword(url)} responds`;
    const problem = await findOtherDatabase(url, directUrl);
    if (problem !== null) {
      return fail(check, `DATABASE_DIRECT_URL: ${problem}`, "set both to the same database, and restart every process");
    }
    if (row?.endless !== true) return ok(check, found);
    return warn(
      check,
      `${found}, and it sets no statement timeout`,
      "set statement_timeout and idle_in_transaction_session_timeout to 60s for its user (`alter role … set …`): no pooler takes them from a client",
    );
  } catch (error) {
    const found = `DATABASE_URL ${withoutPassword(url)} cannot be used: ${reasonOf(error)}`;
    return fail(check, found, "start the pooler, or take DATABASE_DIRECT_URL away");
  }
}
