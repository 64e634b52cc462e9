import { connect, type Sql } from "../../db/client.ts";
import { isResponding } from "../../db/facts.ts";
import type { Life } from "./life.ts";
import type { PartUrls } from "./part.ts";

/** The connections of the serving half by purpose, so that a slow page cannot delay a call. */
export interface ServingConnections {
  /** Reads of the API and the site. */
  sql: Sql;
  /** Counts calls and finds callers. */
  meter: Sql;
  opsSql: Sql;
  consoleSql: Sql;
  /** A replica, for published data and the site; null if none is configured. */
  replica: Sql | null;
}

/**
 * Opens the connections of the serving half; they are closed when the process stops. Two of the meter are opened right
 * away: the first key lookup has 300 ms, which is little for a new connection on a busy machine.
 * @throws the driver's error when the database cannot be reached
 */
export async function openServingConnections(
  life: Life,
  {
    forApi,
    forOps,
    forConsole,
    forReplica = null,
  }: { forApi: PartUrls; forOps: PartUrls; forConsole: PartUrls; forReplica?: PartUrls | null },
): Promise<ServingConnections> {
  const open = ({ url, pooled }: PartUrls, name: string, use: "meter" | "request", max: number) => {
    const sql = connect(url, { name, use, max, pooled });
    life.onStop(`the connections of ${name}`, () => sql.end({ timeout: 2 }));
    return sql;
  };
  const meter = open(forApi, "api", "meter", 4);
  await Promise.all([isResponding(meter), isResponding(meter)]);
  return {
    sql: open(forApi, "api", "request", 6),
    meter,
    opsSql: open(forOps, "ops", "request", 6),
    consoleSql: open(forConsole, "console", "request", 6),
    replica: forReplica === null ? null : open(forReplica, "api", "request", 6),
  };
}
