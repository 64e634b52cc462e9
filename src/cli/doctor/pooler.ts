import { connect } from "../../db/client.ts";
import { detectPooler } from "../../db/pooler.ts";
import { reasonOf } from "../../errors.ts";
import { withoutPassword } from "../../log.ts";
import type { Finding } from "./checks.ts";

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
    return { check, status: "fail", found, advice };
  }
  return directUrl === undefined ? null : checkWay(databaseUrl);
}

/** Checks the way through the pooler, as the processes use it. */
async function checkWay(url: string): Promise<Finding> {
  const sql = connect(url, { name: "doctor", max: 1, pooled: true });
  try {
    const [row] = await sql<{ endless: boolean }[]>`select current_setting('statement_timeout') = '0' as endless`;
    const found = `DATABASE_URL ${withoutPassword(url)} responds`;
    return row?.endless === true
      ? {
          check,
          status: "warn",
          found: `${found}, and it sets no statement timeout`,
          advice:
            "set statement_timeout and idle_in_transaction_session_timeout to 60s for its user (`alter role … set …`): no pooler takes them from a client",
        }
      : { check, status: "ok", found, advice: null };
  } catch (error) {
    const found = `DATABASE_URL ${withoutPassword(url)} cannot be used: ${reasonOf(error)}`;
    return { check, status: "fail", found, advice: "start the pooler, or take DATABASE_DIRECT_URL away" };
  } finally {
    await sql.end({ timeout: 5 });
  }
}
