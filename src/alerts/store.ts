import type { Queryable, Sql } from "../db/client.ts";
import { togetherBy } from "../db/together.ts";
import type { Log } from "../log.ts";

/** What an alert is about: `subject` tells apart several of a kind, such as the id of a house. */
export interface AlertOf {
  kind: string;
  subject: string;
}

/**
 * Raises a critical notice, once: while it is open, every further call in any process changes nothing and logs nothing.
 * `text` says in one sentence what is wrong, since when, and what to do.
 */
export async function openAlert(sql: Queryable, log: Log, alert: AlertOf & { text: string }): Promise<void> {
  const { kind, subject, text } = alert;
  const opened = await sql`
    insert into alerts (kind, subject, text)
    values (${kind}, ${subject}, ${text})
    on conflict do nothing
    returning kind`;
  if (opened.length > 0) log.error({ alert: kind, subject }, text);
}

/** Closes a critical notice and logs the recovery, once; nothing where none is open. */
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

/** What is wrong now of a kind, and with which subjects: all of them, or those that begin with `within`. */
interface Current {
  kind: string;
  within: string;
  current: readonly Wrong[];
}

/** What an alert is about, and what is wrong with it. */
interface Wrong {
  subject: string;
  text: string;
}

/** Alerts that were closed and opened. */
interface Changed {
  closed: Closed[];
  opened: Wrong[];
}

/** Makes the open alerts of a kind equal to `current`: opens the missing ones and closes those that are no more. */
export async function syncAlerts(sql: Queryable, log: Log, kind: string, current: readonly Wrong[]): Promise<void> {
  const [changed] = await syncEach(sql, [{ kind, within: "", current }]);
  if (changed !== undefined) logChanged(log, kind, changed);
}

/** Runs whose alerts are made equal by one statement each way. */
const RUNS_AT_ONCE = 100;

const syncTogether = togetherBy<Sql, Current, Changed>(syncEach, { items: RUNS_AT_ONCE });

/**
 * The same of those alone whose subject begins with `within`, such as `bustabit/` for the tables of a house; with those of
 * other houses that come at the same time.
 */
export async function syncAlertsWithin(
  sql: Sql,
  log: Log,
  { kind, within }: { kind: string; within: string },
  current: readonly Wrong[],
): Promise<void> {
  logChanged(log, kind, await syncTogether(sql, { kind, within, current }));
}

async function syncEach(sql: Queryable, asked: readonly Current[]): Promise<Changed[]> {
  const wrong = asked.flatMap(({ kind, current }) => current.map((one) => ({ ...one, kind })));
  const closed = await sql<(Closed & { kind: string })[]>`
    update alerts a
    set closed_at = clock_timestamp()
    from unnest(
      ${asked.map(({ kind }) => kind)}::text[],
      ${asked.map(({ within }) => within)}::text[]
    ) as asked (kind, within)
    where a.kind = asked.kind
      and a.closed_at is null
      and starts_with(a.subject, asked.within)
      and not exists (
        select
        from unnest(
          ${wrong.map(({ kind }) => kind)}::text[],
          ${wrong.map(({ subject }) => subject)}::text[]
        ) as wrong (kind, subject)
        where wrong.kind = a.kind
          and wrong.subject = a.subject
      )
    returning a.kind, a.subject, a.text, extract(epoch from a.closed_at - a.opened_at)::float8 as seconds`;
  const opened =
    wrong.length === 0
      ? []
      : await sql<(Wrong & { kind: string })[]>`
          insert into alerts (kind, subject, text)
          select *
          from unnest(
            ${wrong.map(({ kind }) => kind)}::text[],
            ${wrong.map(({ subject }) => subject)}::text[],
            ${wrong.map(({ text }) => text)}::text[]
          ) as wrong (kind, subject, text)
          on conflict do nothing
          returning kind, subject, text`;
  return asked.map(({ kind, within }) => {
    const isOwn = (one: { kind: string; subject: string }) => one.kind === kind && one.subject.startsWith(within);
    return { closed: closed.filter(isOwn), opened: opened.filter(isOwn) };
  });
}

/** What the open alerts of a kind are about. */
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

function logChanged(log: Log, kind: string, { closed, opened }: Changed): void {
  logRecovered(log, kind, closed);
  for (const { subject, text } of opened) log.error({ alert: kind, subject }, text);
}

function logRecovered(log: Log, kind: string, closed: readonly Closed[]): void {
  for (const { subject, text, seconds } of closed) {
    log.info({ alert: kind, subject, openSeconds: Math.round(seconds) }, `recovered: ${text}`);
  }
}
