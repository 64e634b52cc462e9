import type { Transaction } from "../db/client.ts";
import type { Lease } from "./lease-store.ts";
import type { AskedTable, PollSummary } from "./poll-summary.ts";

/** Adds a poll to the sums of its minute. */
export async function savePollSums(sql: Transaction, lease: Lease, summary: PollSummary): Promise<void> {
  await sql`
    insert into polls as p (house_id, shard, minute, requests, statuses, bytes, latency_ms)
    values (
      ${lease.house},
      ${lease.shard},
      date_trunc('minute', ${lease.now}::timestamptz),
      ${summary.requests},
      ${JSON.stringify(summary.statuses)}::text::jsonb,
      ${summary.bytes},
      ${summary.latency}
    )
    on conflict (minute, house_id, shard) do update
    set
      requests = p.requests + excluded.requests,
      statuses = (
        select jsonb_object_agg(status, requests)
        from (
          select status, sum(requests::integer) as requests
          from (
            select * from jsonb_each_text(p.statuses)
            union all
            select * from jsonb_each_text(excluded.statuses)
          ) as both_sums (status, requests)
          group by status
        ) as summed
      ),
      bytes = p.bytes + excluded.bytes,
      latency_ms = (
        select array_agg(before + now order by place)
        from unnest(p.latency_ms, excluded.latency_ms) with ordinality as both_sums (before, now, place)
      )`;
}

/** Writes down what failed, each with its reason. */
export async function saveFailures(sql: Transaction, lease: Lease, asked: readonly AskedTable[]): Promise<void> {
  const failed = asked.flatMap(({ tableId, receivedMs, answer }) =>
    answer.kind === "failed" ? [{ tableId, receivedMs, ...answer }] : [],
  );
  if (failed.length === 0) return;
  await sql`
    insert into poll_failures (house_id, table_id, at, status, reason, detail)
    select
      ${lease.house}, table_id, ${lease.now}::timestamptz + received_ms * interval '1 millisecond', status, reason,
      detail
    from unnest(
      ${failed.map(({ tableId }) => tableId)}::integer[],
      ${failed.map(({ receivedMs }) => receivedMs)}::float8[],
      ${failed.map(({ status }) => status)}::integer[],
      ${failed.map(({ reason }) => reason)}::text[],
      ${failed.map(({ detail }) => detail)}::text[]
    ) as f (table_id, received_ms, status, reason, detail)`;
}
