import pg from "pg";

/** Listens on a channel, and lists the payloads in the order they arrive, until it is closed. */
export async function listening(url: string, channel: string) {
  const client = new pg.Client(url);
  const heard: string[] = [];
  client.on("notification", ({ payload = "" }) => heard.push(payload));
  client.on("error", () => undefined); // its database may be dropped first
  await client.connect();
  await client.query(`listen ${pg.escapeIdentifier(channel)}`);
  return { heard, close: () => client.end() };
}
