import pg from "pg";

/**
 * Does something on one connection of its own, past any pool, and closes it.
 * @throws the driver's error where the database cannot be reached, or is lost meanwhile.
 */
export async function withPgClient<Result>(
  url: string,
  name: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ connectionString: url, application_name: `roundhouse ${name}` });
  client.on("error", () => undefined); // the statement that waits for an answer fails with it; unheard, it would end the process
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
