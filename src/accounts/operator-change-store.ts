import type { Queryable, Transaction } from "../db/client.ts";
import { queueMail } from "../mail/outbox-store.ts";
import { operatorChanged } from "./letters.ts";

/** What gives somebody else control of an operator's sign-in for a while. */
export type OperatorChange = "created" | "password" | "second-factor";

/** Stores a change of an operator and mails every active admin. `by` is an e-mail address or a user of the server. */
export async function noteOperatorChange(
  tx: Transaction,
  { userId, email, what, by }: { userId: string; email: string; what: OperatorChange; by: string },
): Promise<void> {
  await tx`
    insert into operator_changes (user_id, what, made_by)
    values (${userId}, ${what}, ${by})`;
  const admins = await tx<{ email: string }[]>`
    select u.email
    from operators o
    join auth.users u on u.id = o.user_id
    where o.role = 'admin' and o.disabled_at is null and u.email not like '%.localhost'
    order by u.email`;
  for (const admin of admins) await queueMail(tx, { ...operatorChanged({ email, what, by }), recipient: admin.email });
}

/** The last three changes of an operator's sign-in, newest first; the audit log shows them with each approval. */
export async function listOperatorChanges(
  sql: Queryable,
  userId: string,
): Promise<{ what: OperatorChange; by: string; at: string }[]> {
  return sql<{ what: OperatorChange; by: string; at: string }[]>`
    select what, made_by as by, utc_text(made_at) as at
    from operator_changes
    where user_id = ${userId}
    order by id desc
    limit 3`;
}

/**
 * Why an operator may not approve the work of these people (ids): they were created, or their password or second factor
 * was reset, within 24 hours, or ever by one of them. Null if they may.
 */
export async function whyNoApproval(sql: Queryable, userId: string, of: readonly string[]): Promise<string | null> {
  const [found] = await sql<{ what: OperatorChange; by: string; isOfThem: boolean; until: string }[]>`
    select c.what, c.made_by as by, t.is_of_them as "isOfThem", utc_text(c.made_at + interval '24 hours') as until
    from operator_changes c
    cross join lateral (
      select exists (
        select from auth.users u where u.id = any(${[...of]}::text[]) and u.id <> c.user_id and u.email = c.made_by
      ) as is_of_them
    ) t
    where c.user_id = ${userId}
      and (t.is_of_them or c.made_at > clock_timestamp() - interval '24 hours')
    order by t.is_of_them desc, c.id desc
    limit 1`;
  if (found === undefined) return null;
  const { what, by, isOfThem, until } = found;
  const done = {
    created: `you were made an operator by ${by}`,
    password: `your password was reset by ${by}`,
    "second-factor": `your second factor was turned off by ${by}`,
  }[what];
  return isOfThem
    ? `${done}, whose work this is: another person has to approve it`
    : `${done}; you can approve from ${until} on, or another person does`;
}
