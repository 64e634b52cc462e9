import { expect, it } from "vitest";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { bringBackTimes } from "../../src/housekeeping/times-store.ts";
import { queueMail } from "../../src/mail/outbox-store.ts";
import { openTestDatabase } from "../support/database.ts";
import { houseEntry } from "../support/houses.ts";

const { sql } = await openTestDatabase();

it("waits and leases that are farther ahead than any end now, and those that are possible stay", async () => {
  await applyHouses(
    sql,
    ["alpha", "beta"].map((id) => houseEntry({ id })),
  );
  await sql`
    update poll_leases
    set
      next_allowed_at = now() + case house_id when 'alpha' then interval '1 year' else interval '23 hours' end,
      lease_until = now() + case house_id when 'alpha' then interval '1 year' else interval '1 minute' end`;
  await sql`
    insert into gaps (table_id, after_round_id, before_round_id, next_attempt_at, lease_until)
    select
      t.id, '1', '3', now() + case l.house_id when 'alpha' then interval '3 hours' else interval '59 minutes' end, l.lease_until
    from tables t
    join poll_leases l on l.house_id = t.house_id`;
  for (const kind of ["alpha", "beta"]) {
    await queueMail(sql, { kind, recipient: `${kind}@example.com`, subject: "test", body: "test" });
  }
  await sql`
    update mails
    set next_try_at = now() + case kind when 'alpha' then interval '3 hours' else interval '59 minutes' end`;
  await sql`insert into mail_failures (next_try_at, reason) values (now() + interval '3 hours', 'test')`;
  await sql`insert into staff_webhook_failure (next_try_at, reason) values (now() + interval '3 hours', 'test')`;
  expect(await bringBackTimes(sql)).toBe(5);
  const isOver = async () => sql`
    select
      l.house_id as house,
      l.next_allowed_at <= clock_timestamp() as poll,
      l.lease_until <= clock_timestamp() as lease,
      g.next_attempt_at <= clock_timestamp() as gap,
      g.lease_until <= clock_timestamp() as "gapLease",
      m.next_try_at <= clock_timestamp() as mail
    from poll_leases l
    join tables t on t.house_id = l.house_id
    join gaps g on g.table_id = t.id
    join mails m on m.kind = l.house_id
    order by l.house_id`;
  const all = (is: boolean) => ({ poll: is, lease: is, gap: is, gapLease: is, mail: is });
  expect(await isOver()).toEqual([
    { house: "alpha", ...all(true) },
    { house: "beta", ...all(false) },
  ]);
  const [server] = await sql`
    select
      (select next_try_at <= clock_timestamp() from mail_failures) as mail,
      (select next_try_at <= clock_timestamp() from staff_webhook_failure) as webhook`;
  expect(server).toEqual({ mail: true, webhook: true });
  expect(await bringBackTimes(sql)).toBe(0);
});

it("rounds from a clock that was ahead count as received now, from which the age of the newest is counted", async () => {
  await sql`
    update table_heads h
    set
      version = version + 1,
      last_round_at = clock_timestamp() + case t.house_id when 'alpha' then interval '20 hours' else interval '1 second' end,
      last_polled_round_at = clock_timestamp()
        + case t.house_id when 'alpha' then interval '20 hours' else interval '-1 hour' end
    from tables t
    where t.id = h.table_id`;
  expect(await bringBackTimes(sql)).toBe(1);
  const [alpha, beta] = await sql<{ round: number; polled: number }[]>`
    select
      extract(epoch from clock_timestamp() - h.last_round_at)::float8 as round,
      extract(epoch from clock_timestamp() - h.last_polled_round_at)::float8 as polled
    from table_heads h
    join tables t on t.id = h.table_id
    order by t.house_id`;
  expect(alpha?.round).toBeGreaterThanOrEqual(0);
  expect(alpha?.polled).toBeGreaterThanOrEqual(0);
  expect(alpha?.polled).toBeLessThan(60);
  expect(beta?.polled).toBeGreaterThanOrEqual(3_600);
  expect(await bringBackTimes(sql)).toBe(0);
});
