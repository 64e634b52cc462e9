import { connect, type Sql } from "./client.ts";

/** Runs `work` on a pool of its own, which is closed afterwards. */
export async function withConnections<Result>(
  url: string,
  options: Parameters<typeof connect>[1],
  work: (sql: Sql) => Promise<Result>,
): Promise<Result> {
  const sql = connect(url, options);
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
