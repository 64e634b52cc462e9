import type { Sql } from "./client.ts";
import { withConnections } from "./with-connections.ts";

/** The facts of a database server. */
export interface DatabaseFacts {
  /** Major version, such as 18. */
  version: number;
  versionText: string;
  connections: number;
  mostConnections: number;
}

/** Reads the facts of a database server. @throws the driver's error if it cannot be reached. */
export async function readDatabaseFacts(url: string): Promise<DatabaseFacts> {
  return withConnections(url, { name: "doctor", max: 1 }, async (sql) => {
    const [facts] = await sql<DatabaseFacts[]>`
      select
        current_setting('server_version_num')::integer / 10000 as version,
        current_setting('server_version') as "versionText",
        (select count(*)::integer from pg_stat_activity where backend_type = 'client backend') as connections,
        current_setting('max_connections')::integer as "mostConnections"`;
    if (facts === undefined) throw new Error("the database returned no row");
    return facts;
  });
}

/**
 * The name of a database and the number of its cluster, which the server, its replicas and poolers share.
 * @throws the driver's error if it cannot be reached.
 */
export async function identityOf(url: string, { pooled = false } = {}): Promise<string> {
  return withConnections(url, { name: "identity", max: 1, pooled }, async (sql) => {
    const [row] = await sql<{ name: string; cluster: string }[]>`
      select current_database() as name, system_identifier::text as cluster from pg_control_system()`;
    if (row === undefined) throw new Error("the database returned no row");
    return `${row.name} of cluster ${row.cluster}`;
  });
}

/** Whether the database responds. @throws the driver's error if it does not. */
export async function isResponding(sql: Sql): Promise<boolean> {
  const rows = await sql`select 1`;
  return rows.length === 1;
}
