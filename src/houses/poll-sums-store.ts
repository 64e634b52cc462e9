import type { Transaction } from "../db/client.ts";
import type { Lease } from "./lease-store.ts";
import type { AskedTable, PollSummary } from "./poll-summary.ts";

/** Adds polls to the sums of their minutes; of each shard there is one at most. */
export async function savePollSums(
  sql: Transaction,
  polls: readonly { lease: Lease; summary: PollSummary }[],
): Promise<void> {
  if (polls.length === 0) return;
  const rows = polls.map(({ lease, summary: { requests, statuses, bytes, latency } }) => {
    return { house: lease.house, shard: lease.shard, at: lease.now, requests, statuses, bytes, latency };
  });
  await sql`
    insert into polls as p (house_id, shard, minute, requests, statuses, bytes, latency_ms)
    select house, shard, date_trunc('minute', at), requests, statuses, bytes, latency
    from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as a (
      house text, shard integer, at timestamptz, requests integer, statuses jsonb, bytes bigint, latency integer[]
    )
    order by house, shard
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
export async function saveFailures(
  sql: Transaction,
  polls: readonly { lease: Lease; asked: readonly AskedTable[] }[],
): Promise<void> {
  const failed = polls.flatMap(({ lease, asked }) =>
    asked.flatMap(({ tableId, receivedMs, answer }) =>
      answer.kind === "failed" ? [{ house: lease.house, now: lease.now, tableId, receivedMs, ...answer }] : [],
    ),
  );
  if (failed.length === 0) return;
  await sql`
    insert into poll_failures (house_id, table_id, at, status, reason, detail)
    select
      house_id, table_id, leased_at::timestamptz + received_ms * interval '1 millisecond', status, reason, detail
    from unnest(
      ${failed.map(({ house }) => house)}::text[],
      ${failed.map(({ now }) => now)}::text[],
      ${failed.map(({ tableId }) => tableId)}::integer[],
      ${failed.map(({ receivedMs }) => receivedMs)}::float8[],
      ${failed.map(({ status }) => status)}::integer[],
      ${failed.map(({ reason }) => reason)}::text[],
      ${failed.map(({ detail }) => detail)}::text[]
    ) as f (house_id, leased_at, table_id, received_ms, status, reason, detail)`;
}
