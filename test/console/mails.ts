import { z } from "zod";
import { mailKeyOf, unsealText } from "../../src/mail/seal.ts";
import type { Sql } from "../../src/db/client.ts";

/** The secret of worlds of tests. */
export const SECRET = "a secret of a test, 32 characters at least";

const kept = z.array(
  z.object({
    kind: z.string(),
    subject: z.string(),
    recipient: z.string(),
    body: z.string(),
    sealed: z.instanceof(Buffer).nullable(),
  }),
);

/** The mails to an address, oldest first, without those about a new browser: every sign-in of a test is one. */
export async function mailsTo(sql: Sql, recipient: string) {
  const mails = kept.parse(
    await sql`select kind, subject, recipient, body, sealed from mails where recipient = ${recipient} and kind <> 'new-device' order by id`,
  );
  return mails.map((mail) => {
    const body = unsealText([mailKeyOf(SECRET)], mail);
    if (body === null) throw new Error(`the link of a mail to ${recipient} is encrypted with another secret`);
    return { kind: mail.kind, subject: mail.subject, body };
  });
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

/** A response without what differs from request to request. */
export async function plain(response: Response): Promise<string> {
  return (await response.text()).replaceAll(/req_\w+/g, "").replaceAll(/[\w.-]+@example\.com/g, "");
}
