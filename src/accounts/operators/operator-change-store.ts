import type { Queryable, Transaction } from "../../db/client.ts";
import type { Letter } from "../../mail/letter.ts";
import { queueMail } from "../../mail/outbox-store.ts";
import { operatorChanged, type StaffChange, staffDisabled, staffReset, type StaffReset } from "../letters.ts";
import { isLocalAddress } from "./local-operator.ts";

/** What gives another person control of an operator's sign-in for a while; `role` is one that may approve, after one that may not. */
export type OperatorChange = "created" | "role" | StaffReset;

/** The same change of the same person is mailed once in each of these windows, so that repeating it floods no one. */
const WINDOW_MS = 120_000;

/** A change of a member of staff, whose mails are written once in a window, except for {@link mailDisabling}. */
interface MailedChange {
  userId: string;
  what: StaffChange;
  by: string;
}

/** Stores a change of an operator, who approves nothing for 24 hours. `by` is an e-mail address or a user of the server. */
export async function saveOperatorChange(
  tx: Transaction,
  { userId, what, by }: { userId: string; what: OperatorChange; by: string },
): Promise<void> {
  await tx`
    insert into operator_changes (user_id, what, made_by)
    values (${userId}, ${what}, ${by})`;
}

/** Stores a change of an operator and mails every active admin. */
export async function noteOperatorChange(
  tx: Transaction,
  { userId, email, what, by }: { userId: string; email: string; what: Exclude<OperatorChange, "role">; by: string },
): Promise<void> {
  await saveOperatorChange(tx, { userId, what, by });
  await mailAdmins(tx, { userId, email, what, by });
}

/** Stores that another person reset or enabled the sign-in of an operator, and mails the operator and every admin. */
export async function noteReset(
  tx: Transaction,
  { userId, email, what, by }: { userId: string; email: string; what: StaffReset; by: string },
): Promise<void> {
  await noteOperatorChange(tx, { userId, email, what, by });
  await mailOperator(tx, { userId, email, what, by }, staffReset({ what, by }));
}

/**
 * Mails an operator and every admin that the operator's sign-in is being disabled, each time: enabling is refused within
 * the window, so this floods no one. An admin is still one of them.
 */
export async function mailDisabling(
  tx: Transaction,
  { userId, email, by }: { userId: string; email: string; by: string },
): Promise<void> {
  const change = { userId, email, what: "disabled", by } as const;
  await mailAdmins(tx, change);
  await mailOperator(tx, change, staffDisabled({ by }));
}

async function mailOperator(
  tx: Transaction,
  { email, ...change }: MailedChange & { email: string },
  letter: Letter,
): Promise<void> {
  if (isLocalAddress(email)) return;
  await queueMail(tx, { ...letter, recipient: email, ...dedup(change, "them") });
}

/**
 * Whether the same change was mailed in this window, so that its mails would be dropped: then the newest mails could state
 * the opposite of it. To be called before the change.
 */
export async function wasJustMailed(sql: Queryable, change: MailedChange): Promise<boolean> {
  const rows = await sql`
    select
    from mails
    where starts_with(dedup_key, ${dedupKeyOf(change)})
    limit 1`;
  return rows.length > 0;
}

/** Mails every active admin about a change of a member of staff. */
export async function mailAdmins(
  tx: Transaction,
  { email, ...change }: MailedChange & { email: string },
): Promise<void> {
  const admins = await tx<{ id: string; email: string }[]>`
    select u.id, u.email
    from operators o
    join auth.users u on u.id = o.user_id
    where o.role = 'admin' and o.disabled_at is null and u.email not like '%.localhost'
    order by u.email`;
  const letter = operatorChanged({ ...change, email });
  for (const admin of admins) {
    await queueMail(tx, { ...letter, recipient: admin.email, ...dedup(change, admin.id) });
  }
}

function dedup(change: MailedChange, recipient: string): { dedupKey?: string } {
  return change.what === "disabled" ? {} : { dedupKey: `${dedupKeyOf(change)}${recipient}` };
}

/** The recipient follows. */
function dedupKeyOf({ userId, what, by }: MailedChange): string {
  return `staff ${userId} ${changeName(what)} by ${by} at ${Math.floor(Date.now() / WINDOW_MS)} to `;
}

function changeName(what: StaffChange): string {
  if (typeof what === "string") return what;
  return "factor" in what ? "second-factor on" : `${what.before} to ${what.role}`;
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

/** Work that another person has to approve. */
export interface WorkToApprove {
  /** The ids of the people who did it. */
  authors: readonly string[];
  /** When the first of them began. */
  begunAt: Date;
}

/** The words of {@link listOperatorChanges} for the person who was changed, and for the one who changed another. */
const CHANGED = {
  created: "you were made an operator",
  enabled: "your sign-in was enabled",
  role: "your role was changed",
  password: "your password was reset",
  "second-factor": "your second factor was turned off",
} as const;
const CHANGES = {
  created: "you made an operator of",
  enabled: "you enabled the sign-in of",
  role: "you changed the role of",
  password: "you reset the password of",
  "second-factor": "you turned off the second factor of",
} as const;

/**
 * Why an operator may not approve some work. Null if they may. Refused are
 * - who was created or enabled, whose password or second factor was reset, or who got a role that may approve, within 24 hours;
 * - who was created or reset by an author, permanently: the author knew how to sign in as them. Enabling and another role reveal
 *   no password;
 * - who did this to an author within 24 hours before the work or since: the author could be them.
 *
 * Not refused: two operators whom the same admin made. See "Limits of four eyes" in SECURITY.md.
 */
export async function whyNoApproval(
  sql: Queryable,
  userId: string,
  { authors, begunAt }: WorkToApprove,
): Promise<string | null> {
  const [found] = await sql<
    { what: OperatorChange; by: string; email: string; isOfAuthor: boolean; isByAuthor: boolean; until: string }[]
  >`
    select
      c.what, c.made_by as by, u.email, c.user_id <> ${userId} as "isOfAuthor", t.is_by_author as "isByAuthor",
      utc_text(c.made_at + interval '24 hours') as until
    from operator_changes c
    join auth.users u on u.id = c.user_id
    cross join lateral (
      select exists (
        select from auth.users a
        where c.what not in ('enabled', 'role') and a.id = any(${[...authors]}::text[]) and a.id <> ${userId} and a.email = c.made_by
      ) as is_by_author
    ) t
    where c.user_id = ${userId}
        and (t.is_by_author or c.made_at > clock_timestamp() - interval '24 hours')
      or c.user_id = any(${[...authors]}::text[])
        and c.user_id <> ${userId}
        and c.made_by = (select email from auth.users where id = ${userId})
        and c.made_at > ${begunAt}::timestamptz - interval '24 hours'
    order by t.is_by_author desc, 4 desc, c.id desc
    limit 1`;
  if (found === undefined) return null;
  const { what, by, email, isOfAuthor, isByAuthor, until } = found;
  if (isOfAuthor) return `${CHANGES[what]} ${email} within 24 hours of this work: another person has to approve it`;
  return isByAuthor
    ? `${CHANGED[what]} by ${by}, whose work this is: another person has to approve it`
    : `${CHANGED[what]} by ${by}; you can approve from ${until} on, or another person does`;
}
