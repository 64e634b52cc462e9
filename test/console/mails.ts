import { z } from "zod";
import type { Sql } from "../../src/db/client.ts";

const kept = z.array(z.object({ kind: z.string(), subject: z.string(), body: z.string() }));

/** The mails that were written to an address, oldest first. */
export async function mailsTo(sql: Sql, recipient: string) {
  return kept.parse(await sql`select kind, subject, body from mails where recipient = ${recipient} order by id`);
}

/** The path of the link in the newest mail to an address. */
export async function linkTo(sql: Sql, recipient: string, page: string): Promise<string> {
  const mails = await mailsTo(sql, recipient);
  const found = mails.at(-1)?.body.match(new RegExp(`https?://[^/\\s]+(/console/${page}\\?token=[\\w-]{43})\\n`));
  if (!found?.[1]) throw new Error(`no link to ${page} in the newest mail to ${recipient}: ${mails.at(-1)?.body}`);
  return found[1];
}

/** The token of a link. */
export function tokenOf(link: string): string {
  return new URL(link, "http://here").searchParams.get("token") ?? "";
}

/** An answer without what differs from request to request. */
export async function plain(response: Response): Promise<string> {
  return (await response.text()).replaceAll(/req_\w+/g, "").replaceAll(/[\w.-]+@example\.com/g, "");
}
