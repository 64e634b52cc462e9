import type { Sql, Transaction } from "../db/client.ts";

/** No wait is longer: a house that reached its limits of a day is polled again at 00:00 UTC. */
const LONGEST_WAIT_HOURS = 25;
/** Gaps, mails and orders wait up to an hour, the mail server and the staff webhook ten minutes. */
const LONGEST_RETRY_HOURS = 2;
/** No lease of a poll or of an attempt at a gap is longer. */
const LONGEST_LEASE_MINUTES = 10;
/** A smaller step back of the clock ends by itself. */
const LONGEST_STEP_MINUTES = 1;

/**
 * Brings back times before which nothing happens and that are farther ahead than any wait or lease, since the clock was ahead
 * and was set back: polls, gaps, mails, the staff webhook and orders would stop until then. Newest rounds from that clock count
 * as received now, since a house would be live until that time without a round. Returns the number of changed rows.
 */
export async function bringBackTimes(sql: Sql): Promise<number> {
  return sql.begin(async (tx) => {
    const tooFar = tx`now() + ${LONGEST_WAIT_HOURS} * interval '1 hour'`;
    const tooLate = tx`now() + ${LONGEST_RETRY_HOURS} * interval '1 hour'`;
    const tooLong = tx`now() + ${LONGEST_LEASE_MINUTES} * interval '1 minute'`;
    const changed = [
      // rows that a poll has locked are brought back by the next run
      await tx`
        update poll_leases l
        set
          next_allowed_at = case when l.next_allowed_at > ${tooFar} then clock_timestamp() else l.next_allowed_at end,
          lease_until = case when l.lease_until > ${tooLong} then clock_timestamp() else l.lease_until end
        from (
          select house_id, shard
          from poll_leases
          where next_allowed_at > ${tooFar}
            or lease_until > ${tooLong}
          for no key update skip locked
        ) far
        where l.house_id = far.house_id
          and l.shard = far.shard`,
      await tx`
        update gaps g
        set
          next_attempt_at = case when g.next_attempt_at > ${tooLate} then clock_timestamp() else g.next_attempt_at end,
          lease_until = case when g.lease_until > ${tooLong} then clock_timestamp() else g.lease_until end
        from (
          select id
          from gaps
          where state = 'open'
            and (next_attempt_at > ${tooLate} or lease_until > ${tooLong})
          limit 1000
          for no key update skip locked
        ) far
        where g.id = far.id`,
      await tx`
        update mails m
        set next_try_at = clock_timestamp()
        from (
          select id
          from mails
          where sent_at is null
            and given_up_at is null
            and next_try_at > ${tooLate}
          limit 1000
          for no key update skip locked
        ) far
        where m.id = far.id`,
      await bringBackHeads(tx),
      await tx`update mail_failures set next_try_at = clock_timestamp() where next_try_at > ${tooLate}`,
      await tx`update staff_webhook_failure set next_try_at = clock_timestamp() where next_try_at > ${tooLate}`,
      await tx`update payment_app_orders set ask_at = clock_timestamp() where ask_at > ${tooLate}`,
    ];
    return changed.reduce((sum, { count }) => sum + count, 0);
  });
}

function bringBackHeads(tx: Transaction) {
  const tooNew = tx`now() + ${LONGEST_STEP_MINUTES} * interval '1 minute'`;
  return tx`
    update table_heads h
    set
      version = version + 1,
      changed_at = clock_timestamp(),
      last_round_at = least(h.last_round_at, clock_timestamp()),
      last_polled_round_at = least(h.last_polled_round_at, clock_timestamp())
    from (
      select table_id
      from table_heads
      where last_round_at > ${tooNew}
        or last_polled_round_at > ${tooNew}
      limit 1000
      for no key update skip locked
    ) far
    where h.table_id = far.table_id`;
}
