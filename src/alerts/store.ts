import type { Queryable } from "../db/client.ts";
import type { Log } from "../log.ts";
import { cut } from "../text.ts";

/** The limit of the column. */
const LONGEST_TEXT = 2_000;

/** Identifies an alert: `subject` distinguishes alerts of one kind, such as the id of a house. */
export interface AlertOf {
  kind: string;
  subject: string;
}

/**
 * Raises a critical notice, once: while it is open, every further call in any process changes nothing and logs nothing.
 * `text` states in one sentence what is wrong, since when, and what to do.
 */
export async function openAlert(sql: Queryable, log: Log, alert: AlertOf & { text: string }): Promise<void> {
  const { kind, subject, text } = alert;
  const opened = await sql`
    insert into alerts (kind, subject, text)
    values (${kind}, ${subject}, ${cut(text, LONGEST_TEXT)})
    on conflict do nothing
    returning kind`;
  if (opened.length > 0) log.error({ alert: kind, subject }, text);
}

/** Closes a critical notice and logs the recovery, once; does nothing if none is open. */
export async function closeAlert(sql: Queryable, log: Log, { kind, subject }: AlertOf): Promise<void> {
  const closed = await sql<Closed[]>`
    update alerts
    set closed_at = clock_timestamp()
    where kind = ${kind}
      and subject = ${subject}
      and closed_at is null
    returning subject, text, extract(epoch from closed_at - opened_at)::float8 as seconds`;
  logRecovered(log, kind, closed);
}

/** What an alert is about, and what is wrong with it. */
export interface Wrong {
  subject: string;
  text: string;
}

/** Makes the open alerts of a kind equal to `current`: opens the missing ones and closes the others. */
export function syncAlerts(sql: Queryable, log: Log, kind: string, current: readonly Wrong[]): Promise<void> {
  return syncAlertsWithin(sql, log, { kind, within: "" }, current);
}

/** As {@link syncAlerts}, only for subjects that begin with `within`, such as `bustabit/` for the tables of a house. */
export async function syncAlertsWithin(
  sql: Queryable,
  log: Log,
  { kind, within }: { kind: string; within: string },
  current: readonly Wrong[],
): Promise<void> {
  const subjects = current.map(({ subject }) => subject);
  // whatever writes several alerts locks them in the order of the mail
  const closed = await sql<Closed[]>`
    with ended as (
      select kind, subject, opened_at
      from alerts
      where kind = ${kind}
        and closed_at is null
        and starts_with(subject, ${within})
        and subject <> all(${subjects}::text[])
      order by opened_at, subject
      for no key update
    )
    update alerts a
    set closed_at = clock_timestamp()
    from ended
    where a.kind = ended.kind
      and a.subject = ended.subject
      and a.opened_at = ended.opened_at
    returning a.subject, a.text, extract(epoch from a.closed_at - a.opened_at)::float8 as seconds`;
  logRecovered(log, kind, closed);
  if (current.length === 0) return;
  const opened = await sql<Wrong[]>`
    insert into alerts (kind, subject, text)
    select ${kind}, subject, text
    from unnest(${subjects}::text[], ${current.map(({ text }) => cut(text, LONGEST_TEXT))}::text[]) as wrong (subject, text)
    on conflict do nothing
    returning subject, text`;
  for (const { subject, text } of opened) log.error({ alert: kind, subject }, text);
}

/** Lists the subjects of the open alerts of a kind. */
export async function listOpenSubjects(sql: Queryable, kind: string): Promise<string[]> {
  const rows = await sql<{ subject: string }[]>`
    select subject
    from alerts
    where kind = ${kind}
      and closed_at is null
    order by subject`;
  return rows.map(({ subject }) => subject);
}

interface Closed {
  subject: string;
  text: string;
  seconds: number;
}

function logRecovered(log: Log, kind: string, closed: readonly Closed[]): void {
  for (const { subject, text, seconds } of closed) {
    log.info({ alert: kind, subject, openSeconds: Math.round(seconds) }, `recovered: ${text}`);
  }
}
