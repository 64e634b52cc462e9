import type { Queryable, Transaction } from "../../db/client.ts";
import { type ListPage, type PageWanted, readListPage } from "../../db/list-page.ts";
import type { Problem } from "./problems.ts";
import type { Snooze } from "./snooze.ts";

const KEPT_DAYS = 30;

/** Returns the snoozes that have not ended by time: of each problem at most one, for 31 days at most. */
export async function listSnoozes(sql: Queryable): Promise<Snooze[]> {
  return sql<Snooze[]>`
    select
      kind, subject, tone, what, since, ends_on_change as "endsOnChange", until, made_by as "madeBy",
      made_at as "madeAt", reason
    from snoozes
    where until > clock_timestamp()`;
}

/** Snoozes problems for so many hours; an earlier snooze of the same problem is replaced. Old snoozes are deleted. */
export async function saveSnoozes(
  tx: Transaction,
  problems: readonly Problem[],
  snooze: { hours: number; endsOnChange: boolean; by: string; reason: string },
): Promise<void> {
  await tx`
    insert into snoozes (kind, subject, tone, what, since, ends_on_change, until, made_by, reason)
    select
      kind, subject, tone, what, since::timestamptz, ${snooze.endsOnChange},
      clock_timestamp() + ${snooze.hours} * interval '1 hour', ${snooze.by}, ${snooze.reason}
    from unnest(
      ${problems.map(({ kind }) => kind)}::text[],
      ${problems.map(({ subject }) => subject)}::text[],
      ${problems.map(({ tone }) => tone)}::text[],
      ${problems.map(({ what }) => what)}::text[],
      ${problems.map(({ since }) => since?.toISOString() ?? null)}::text[]
    ) as given (kind, subject, tone, what, since)
    on conflict (kind, subject) do update
    set
      tone = excluded.tone,
      what = excluded.what,
      since = excluded.since,
      ends_on_change = excluded.ends_on_change,
      until = excluded.until,
      made_by = excluded.made_by,
      made_at = clock_timestamp(),
      reason = excluded.reason`;
  await tx`delete from snoozes where until < clock_timestamp() - ${KEPT_DAYS} * interval '1 day'`;
}

/** Ends a snooze. Returns false if there is none. */
export async function deleteSnooze(
  tx: Transaction,
  { kind, subject }: { kind: string; subject: string },
): Promise<boolean> {
  const deleted = await tx`
    delete from snoozes
    where kind = ${kind}
      and subject = ${subject}
      and until > clock_timestamp()`;
  return deleted.count > 0;
}

/** An alert that is closed. */
export interface ClosedAlert {
  kind: string;
  subject: string;
  text: string;
  openedAt: Date;
  closedAt: Date;
}

/** Returns a page of closed alerts, the last closed first; the last page if there are fewer. */
export async function listClosedAlerts(sql: Queryable, wanted: PageWanted): Promise<ListPage<ClosedAlert>> {
  return readListPage<ClosedAlert>(
    wanted,
    ({ limit, offset }) => sql<(ClosedAlert & { total: number })[]>`
    select kind, subject, text, opened_at as "openedAt", closed_at as "closedAt", count(*) over ()::integer as total
    from alerts
    where closed_at is not null
    order by closed_at desc, kind, subject
    limit ${limit}
    offset ${offset}`,
  );
}
