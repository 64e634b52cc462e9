import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import type { Sql } from "../../src/db/client.ts";
import type { CookieClient } from "./cookie-client.ts";
import { eventually } from "./eventually.ts";

/** The rest of a form whose head was received. */
export interface HeldForm {
  /** Sends it, and returns the response. */
  send(): Promise<{ status: number; text: string }>;
}

/** Sends the head of a form of a signed-in person, and waits until their session was looked up for it. */
export async function holdForm(
  sql: Sql,
  { url, client, userId }: { url: string; client: CookieClient; userId: string },
  path: string,
  fields: Record<string, string>,
): Promise<HeldForm> {
  await sql`
    update auth.sessions set seen_at = clock_timestamp() - interval '6 minutes' where user_id = ${userId}`;
  const body = new URLSearchParams(fields).toString();
  const sending = request(url + path, {
    method: "POST",
    headers: {
      cookie: [...client.cookies].map((cookie) => cookie.join("=")).join("; "),
      origin: url,
      "sec-fetch-site": "same-origin",
      "content-type": "application/x-www-form-urlencoded",
      "content-length": body.length,
    },
  });
  sending.flushHeaders();
  await eventually(async () => {
    const [row] = await sql<{ isUsed: boolean }[]>`
      select bool_or(seen_at > clock_timestamp() - interval '1 minute') as "isUsed"
      from auth.sessions
      where user_id = ${userId}`;
    return row?.isUsed;
  });
  return {
    async send() {
      const answered = once(sending, "response");
      sending.end(body);
      const [response] = (await answered) as [IncomingMessage];
      return { status: response.statusCode ?? 0, text: await text(response) };
    },
  };
}
