import type { Job as QueuedRun } from "bullmq";
import { hostname, tmpdir } from "node:os";
import { resolve } from "node:path";
import { afterAll, beforeEach, describe, expect, it, test } from "vitest";
import housekeep from "../../jobs/housekeep.ts";
import { connect } from "../../src/db/client.ts";
import { ROLES } from "../../src/db/roles/role-grants.ts";
import { withRole } from "../../src/db/roles/take-role.ts";
import { PRUNED_BY_AGE, pruneStatement } from "../../src/housekeeping/prune-store.ts";
import { noteWorkUptime } from "../../src/housekeeping/uptime-store.ts";
import { listUptime, readWork } from "../../src/site/site-store.ts";
import { createRunner } from "../../src/queue/runs/run.ts";
import { noteApiUptime } from "../../src/serve/uptime-store.ts";
import { RETENTION } from "../../src/housekeeping/retention.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { forgetHouses, houseEntry } from "../support/houses.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { makeItem, makePayload, makeTable } from "../support/make.ts";

const { sql, url } = await openTestDatabase();
const worker = connect(withRole(url, ROLES.worker), { name: "worker" });
afterAll(() => worker.end());
/** The day in which a test began, in UTC: midnight may come before it ends. */
let today: string;
beforeEach(async () => {
  const [clock] = await sql<{ day: string }[]>`select (now() at time zone 'UTC')::date::text as day`;
  today = clock?.day ?? "";
  await forgetHouses(sql);
  await applyHouses(sql, [houseEntry(), houseEntry({ id: "beta" })]);
  await sql`truncate uptime_days`;
  await workedAgo(2);
});

/** Stores that the instance worked on the day so many days ago. */
async function workedAgo(days: number, good = 1): Promise<void> {
  await sql`insert into uptime_days values ('scheduling', ${today}::date - ${days}::integer, ${good}, 1440)`;
}

async function run(kind: "partitions" | "retention" | "disk" | "uptime", env: Record<string, string> = {}) {
  const { context, lines } = testContext(worker, { env });
  return { counts: await housekeep.run({ kind }, context), lines };
}

async function partitions(): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select relname as name
    from pg_class
    where relkind = 'r'
      and relname ~ '^(payloads|polls|poll_failures|call_minutes)_[0-9]+$'
    order by relname`;
  return rows.map(({ name }) => name);
}

/** The name of a day's partition, so many days ago. */
async function dayOf(parent: string, daysAgo: number): Promise<string> {
  const [row] = await sql<{ name: string }[]>`
    select ${parent} || '_' || to_char(${today}::date - ${daysAgo}::integer, 'YYYYMMDD') as name`;
  return row?.name ?? "";
}

/** Makes the partitions of a day, but for calls by minute: their time is over the sooner. */
async function makeDay(daysAgo: number): Promise<void> {
  await sql`select make_day_partitions(${today}::date - ${daysAgo}::integer, 1)`;
  await sql`drop table if exists ${sql(await dayOf("call_minutes", daysAgo))}`;
}

/** Payloads of a day, one per second from noon; those refused from six. */
async function payloads(
  daysAgo: number,
  kind: { state?: "read" | "refused" | "unread"; quarantined?: number; table?: number; count?: number; bytes?: number },
): Promise<void> {
  const { state = "read", quarantined = 0, table = 1, count = 1, bytes = 10 } = kind;
  await sql`
    insert into payloads (
      table_id, kind, requested_at, received_at, path, status, bytes, sha256, body, state, read_at, refused_reason,
      quarantined
    )
    select
      ${table}, 'poll', at, at, '/rounds', 200, ${bytes}::integer, sha256(n::text::bytea), convert_to(repeat('x', ${bytes}), 'UTF8'),
      ${state}, case when ${state} <> 'unread' then now() end, case when ${state} = 'refused' then 'HTML' end,
      ${quarantined}
    from generate_series(1, ${count}::integer) as n,
      lateral (
        select (${today}::date - ${daysAgo}::integer + interval '1 hour' * ${state === "refused" ? 18 : 12}) at time zone 'UTC'
          + n * interval '1 second' as at
      ) as noon`;
}

describe("partitions", () => {
  test("are there from yesterday to four days ahead, and twice is once", async () => {
    await sql`drop table ${sql(await dayOf("polls", -1))}`;
    await run("partitions");
    const before = await partitions();
    for (const parent of ["payloads", "polls", "poll_failures"]) {
      for (const daysAgo of [1, 0, -1, -2, -3, -4]) expect(before).toContain(await dayOf(parent, daysAgo));
    }
    await run("partitions");
    expect(await partitions()).toEqual(before);
  });

  test("are made while others read and write, without anybody waiting", async () => {
    await sql.begin(async (busy) => {
      await busy`insert into polls values ('alpha', 0, now(), 1, '{}', 0, '{}')`;
      await busy`select count(*) from payloads`;
      await sql.begin(async (maker) => {
        await maker`set local lock_timeout = '1s'`;
        await maker`select make_day_partitions(${today}::date - 20, 1)`;
      });
      expect(await partitions()).toContain(await dayOf("payloads", 20));
    });
    await run("retention");
  });
});

describe("retention", () => {
  test("drops no day if the instance did not work two to eight days ago: the clock may be ahead", async () => {
    await makeDay(16);
    await sql`truncate uptime_days`;
    for (const days of [9, 1, 0]) await workedAgo(days);
    await workedAgo(3, 0); // as a day without work is summed
    const { counts, lines } = await run("retention");
    expect(counts).toMatchObject({ dropped: 0 });
    expect(await partitions()).toContain(await dayOf("polls", 16));
    expect(lines.map(({ msg }) => msg)).toContainEqual(
      expect.stringMatching(
        /^polls_\d{8} is kept for another hour: expected this instance at work two to eight days ago/,
      ),
    );
    await workedAgo(8);
    await run("retention");
    expect(await partitions()).not.toContain(await dayOf("polls", 16));
  });

  test("drops calls by minute a day after their own", async () => {
    await sql`select make_day_partitions(${today}::date - 2, 1)`;
    await run("retention");
    const left = await partitions();
    expect(left).toContain(await dayOf("call_minutes", 1));
    expect(left).not.toContain(await dayOf("call_minutes", 2));
  });

  test("drops a day of payloads after the retention time, and keeps refused or quarantined ones", async () => {
    for (const day of [5, 2]) await makeDay(day);
    await payloads(5, { count: 3 });
    await payloads(5, { state: "refused" });
    await payloads(5, { quarantined: 1, table: 2 });
    await payloads(2, { count: 3 });
    const { counts } = await run("retention", { PAYLOAD_RETENTION_HOURS: "48" });
    expect(counts).toMatchObject({ kept: 2, waiting: 0 });
    expect(await partitions()).not.toContain(await dayOf("payloads", 5));
    expect(await partitions()).toContain(await dayOf("payloads", 2));
    const kept =
      await sql`select house_id, state, refused_reason, convert_from(body, 'UTF8') as body from payloads_kept order by table_id`;
    expect([...kept]).toEqual([
      { house_id: "alpha", state: "refused", refused_reason: "HTML", body: "xxxxxxxxxx" },
      { house_id: "beta", state: "read", refused_reason: null, body: "xxxxxxxxxx" },
    ]);
  });

  test("keeps the result of a reread that ends while the day is copied", async () => {
    await makeDay(5);
    await payloads(5, { state: "refused" });
    let done: ReturnType<typeof run> | undefined;
    await sql.begin(async (reread) => {
      await reread`update payloads set state = 'read', refused_reason = null, new_rounds = 1`;
      done = run("retention");
      await lockWaits(sql, 1);
    });
    expect((await done)?.counts).toMatchObject({ kept: 1, dropped: 1 });
    expect([...(await sql`select state, new_rounds from payloads_kept`)]).toEqual([{ state: "read", new_rounds: 1 }]);
  });

  test("keeps a payload that an open quarantined item needs", async () => {
    await makeDay(5);
    await payloads(5, {});
    await sql`
      insert into quarantine (table_id, payload_received_at, code, reason, item, item_sha256)
      select 1, received_at, 'not_a_number', 'x', '{}', 'a'
      from payloads`;
    expect((await run("retention")).counts).toMatchObject({ kept: 1 });
  });

  test("keeps the payload that an open alert payload_differs names, also above the limits of its house", async () => {
    await makeDay(6);
    await payloads(6, { count: 3 });
    await payloads(6, { state: "refused", count: 2_000 });
    const named = sql`select received_at from payloads where state = 'read' order by received_at limit 1`;
    const [differing] = await sql<{ at: string }[]>`
      insert into alerts (kind, subject, text)
      select 'payload_differs', 'alpha/crash/global ' || utc_text(received_at), 'x'
      from (${named}) p
      returning split_part(subject, ' ', 2) as at`;
    await run("retention");
    await makeDay(5);
    await payloads(5, { state: "refused", count: 2_000 });
    await run("retention");
    const kept = async () => sql`select from payloads_kept where received_at = ${differing?.at ?? ""}::timestamptz`;
    expect(await kept()).toHaveLength(1);
    await sql`update alerts set closed_at = clock_timestamp() where kind = 'payload_differs'`;
    await run("retention");
    expect(await kept()).toHaveLength(0);
  });

  test("never drops a day with an unread payload, and reports it", async () => {
    await makeDay(5);
    await payloads(5, { state: "unread" });
    const { counts, lines } = await run("retention");
    expect(counts).toMatchObject({ dropped: 0, waiting: 1 });
    expect(lines.map(({ msg }) => msg)).toContainEqual(expect.stringMatching(/^1 responses of .* are not read yet/));
    expect(await sql`select from payloads`).toHaveLength(1);
    await sql`update payloads set state = 'read', read_at = now()`;
    expect((await run("retention")).counts).toMatchObject({ dropped: 1 });
  });

  test("twice is once, and with nothing to do is fine", async () => {
    await makeDay(5);
    await payloads(5, { state: "refused" });
    await run("retention");
    const before = await sql`select * from payloads_kept`;
    expect((await run("retention")).counts).toEqual({ dropped: 0, kept: 0, waiting: 0, trimmed: 0, pruned: 0 });
    expect(await sql`select * from payloads_kept`).toEqual(before);
  });

  test("keeps of a house at most 2,000 payloads and 64 MiB, the newest", async () => {
    await makeDay(6);
    await makeDay(5);
    await payloads(6, { state: "refused", count: 50 });
    await payloads(5, { state: "refused", count: 2_000 });
    await payloads(5, { state: "refused", count: 5, bytes: 16 << 20, table: 2 });
    await run("retention");
    const kept = await sql`
      select house_id, count(*)::integer as rows, extract(second from min(received_at))::integer as oldest
      from payloads_kept
      where received_at < now() - interval '4 days'
      group by house_id
      order by house_id`;
    expect([...kept]).toEqual([
      { house_id: "alpha", rows: 2_000, oldest: 1 },
      { house_id: "beta", rows: 4, oldest: 2 },
    ]);
    const days = await sql`select distinct received_at::date from payloads_kept where house_id = 'alpha'`;
    expect(days).toHaveLength(1);
  });

  test("keeps sums and failures of polls for 14 days", async () => {
    for (const day of [14, 16]) await makeDay(day);
    await run("retention");
    const names = await partitions();
    for (const parent of ["polls", "poll_failures"]) {
      expect(names).toContain(await dayOf(parent, 14));
      expect(names).not.toContain(await dayOf(parent, 16));
    }
  });

  test("lets others read and write while it waits for a long transaction to end", async () => {
    await makeDay(5);
    await payloads(5, {});
    let retention: ReturnType<typeof run> | undefined;
    await sql.begin(async (long) => {
      await long`select count(*) from payloads`;
      retention = run("retention");
      await eventually(async () => {
        const waiting = await sql`
          select
          from pg_stat_activity
          where datname = current_database()
            and query like 'select drop_day%'
            and wait_event_type = 'Lock'`;
        return waiting.length > 0;
      });
      await sql`select count(*) from payloads`;
      await payloads(0, {});
    });
    expect((await retention)?.counts).toMatchObject({ dropped: 1 });
  });

  test("drops a day that an interrupted run left detached", async () => {
    await makeDay(5);
    const name = await dayOf("payloads", 5);
    await sql`alter table payloads detach partition ${sql(name)}`;
    expect((await run("retention")).counts).toMatchObject({ dropped: 1 });
    expect(await partitions()).not.toContain(name);
  });

  test("keeps the newest 10,000 open quarantined items of a table, however many more there are, and reports what it dropped", async () => {
    await sql`
      insert into quarantine (table_id, code, reason, item, item_sha256, last_seen_at)
      select 1, 'not_a_number', 'x', '{}', n::text, now() - n * interval '1 second'
      from generate_series(1, 110600) as n`;
    const { counts, lines } = await run("retention");
    expect(counts).toMatchObject({ trimmed: 100_600 });
    expect(lines.map(({ msg }) => msg)).toContain(
      "alpha/crash/global has too many quarantined items; the 100600 oldest were dropped",
    );
    const [left] = await sql`select count(*)::integer as rows, max(item_sha256::integer) as oldest from quarantine`;
    expect(left).toEqual({ rows: 10_000, oldest: 10_000 });
  });

  test("drops no quarantined item that is decided at the same time", async () => {
    await sql`
      insert into quarantine (table_id, code, reason, item, item_sha256, last_seen_at)
      select 1, 'not_a_number', 'x', '{}', n::text, now() - n * interval '1 second'
      from generate_series(1, 10001) as n`;
    let trimmed: ReturnType<typeof run> | undefined;
    await sql.begin(async (deciding) => {
      await deciding`
        update quarantine
        set state = 'released', decided_by = 'ann', decision_reason = 'x', decided_at = now()
        where item_sha256 = '10001'`;
      trimmed = run("retention");
      await lockWaits(sql, 1);
    });
    await trimmed;
    expect(await sql`select from quarantine where item_sha256 = '10001'`).toHaveLength(1);
  });

  test("deletes sign-ins that ended a day ago, and second steps that were not taken", async () => {
    await sql.unsafe(`
      insert into auth.users (id, name, email, surface) values ('u', 'u', 'ann@example.com', 'console');
      insert into auth.sessions (id, token, expires_at, updated_at, user_id, surface, ip_address)
      select s, s, now() - s::interval, now(), 'u', 'console', '203.0.113.9' from unnest(array['25 h', '23 h', '-1 h']) s;
      insert into auth.verifications (id, identifier, value, expires_at, surface)
      select s, '2fa-' || s, 'u', now() - s::interval, 'console' from unnest(array['25 h', '-1 h']) s`);
    expect((await run("retention")).counts).toMatchObject({ pruned: 2 });
    expect(await sql`select id from auth.sessions order by id`).toEqual([{ id: "-1 h" }, { id: "23 h" }]);
    expect(await sql`select id from auth.verifications`).toEqual([{ id: "-1 h" }]);
    await sql`delete from auth.verifications`;
    await sql`delete from auth.users`;
  });

  test("continues with independent steps after a failure, and fails at the end", async () => {
    await sql`
      insert into auth.verifications (id, identifier, value, expires_at, surface)
      values ('over', '2fa-over', 'u', now() - interval '25 hours', 'console')`;
    await sql`
      insert into notices (table_id, kind, text, opened_at, closed_at)
      values (1, 'gap', 'over', now() - interval '92 days', now() - interval '91 days')`;
    await sql`alter table quarantine rename to quarantine_away`;
    try {
      await expect(run("retention")).rejects.toThrow('relation "quarantine" does not exist');
    } finally {
      await sql`alter table quarantine_away rename to quarantine`;
    }
    expect(await sql`select id from auth.verifications`).toEqual([]);
    expect(await sql`select text from notices`).toEqual([]);
  });

  test("searches for decided items by an index, however many are open", async () => {
    await sql`
      insert into quarantine (table_id, code, reason, item, item_sha256)
      select 1, 'not_a_number', 'x', '{}', n::text
      from generate_series(1, 5000) as n`;
    await sql`analyze quarantine`;
    const plan = await sql<{ "QUERY PLAN": string }[]>`explain ${pruneStatement(sql, "quarantine")}`;
    expect(plan.map((row) => row["QUERY PLAN"]).join("\n")).toContain("Index Scan using quarantine_settled");
  });

  test("thins out rolling calibrations, and lets none go that anything rests on", async () => {
    const made = await sql<{ id: number; version: number }[]>`
      insert into calibrations (
        table_id, model, version, kind, begin_seq, from_seq, to_seq, rounds, state, state_hash, live_state_hash,
        other_bands, weights, sums, carry, record_hash, created_at
      )
      select
        1, 'k7@1', 1000 - n, 'rolling', 1, 1, 1, 1, '', 'a', case n when 300 then 'b' else 'a' end, false, '{}', '{}',
        '{}', '', now() - n * interval '6 hours'
      from generate_series(0, 599) as n
      order by n desc
      returning id::integer as id, version`;
    const idOf = new Map(made.map(({ version, id }) => [version, id]));
    await sql`
      insert into calibrations (
        table_id, model, version, kind, begin_seq, from_seq, to_seq, rounds, state, state_hash, other_bands, weights,
        sums, carry, record_hash, promoted_from, decided_by, reason, created_at
      )
      values (
        1, 'k7@1', 1001, 'promoted', 1, 1, 1, 1, '', 'a', false, '{}', '{}', '{}', '', ${idOf.get(600) ?? 0}, 'ann', 'x',
        now() - interval '200 days'
      )`;
    await sql`
      insert into calibration_comparisons (a_id, b_id, asked_by)
      values (${idOf.get(550) ?? 0}, ${idOf.get(551) ?? 0}, 'ann')`;
    await sql`
      insert into calibration_runs (table_id, kind, model, status, calibration_id, finished_at)
      select 1, 'rolling', 'k7@1', 'done', id, now() - interval '1 day'
      from calibrations
      where kind = 'rolling'
      union all
      select 1, 'rolling', 'k7@1', status, null, now() - days * interval '1 day'
      from (values ('done', 6), ('done', 8), ('failed', 8)) run (status, days)`;
    const { counts, lines } = await run("retention");
    const left = await sql<{ version: number; ageHours: number; kind: string }[]>`
      select version, kind, extract(epoch from now() - created_at)::float8 / 3600 as "ageHours"
      from calibrations
      order by version desc`;
    const versions = left.filter(({ kind }) => kind === "rolling").map(({ version }) => version);
    // the newest, the first, one that did not meet the live state, one promoted, two compared
    expect(versions).toEqual(
      expect.arrayContaining([1_000, 999, 998, 997, 996, 995, 994, 993, 401, 700, 600, 550, 551]),
    );
    const old = left.filter(({ ageHours }) => ageHours > 31 * 24).map(({ version }) => version);
    expect(old.filter((version) => ![401, 700, 600, 550, 551, 1_001].includes(version)).length).toBeLessThanOrEqual(6);
    const perDay = left.filter(({ ageHours }) => ageHours > 72 && ageHours < 29 * 24).length;
    expect(perDay).toBeGreaterThanOrEqual(24);
    expect(perDay).toBeLessThanOrEqual(28);
    expect(counts).toMatchObject({ pruned: 600 - versions.length + 2 });
    expect(lines.map(({ msg }) => msg)).toContain(
      `${600 - versions.length} rows of calibrations were older than they are kept`,
    );
    const [runs] = await sql`
      select count(*)::integer as runs, count(calibration_id)::integer as with_record
      from calibration_runs`;
    expect(runs).toEqual({ runs: versions.length + 1, with_record: versions.length });
    expect((await run("retention")).counts).toMatchObject({ pruned: 0 });
    await sql`delete from calibration_comparisons`;
    await sql`delete from calibration_runs`;
    await sql`delete from calibrations`;
  });

  test("keeps calls by day for 400 days and by month permanently", async () => {
    const [account] = await sql<
      { id: string }[]
    >`insert into accounts (email) values ('old@example.com') returning id::text`;
    const [key] = await sql<{ id: string }[]>`
      insert into keys (account_id, name, sha256, last4)
      values (${account?.id ?? ""}, 'old', decode(repeat('ab', 32), 'hex'), 'last')
      returning id::text`;
    await sql`
      insert into usage_counts (account_id, day, key_id, endpoint, n)
      select ${account?.id ?? ""}, (now() at time zone 'UTC')::date - days, ${key?.id ?? ""}, 'games', 1
      from unnest(array[61, 63, 399, 401]) days`;
    await sql`
      insert into quotas (account_id, period, used)
      select ${account?.id ?? ""}, to_char((now() at time zone 'UTC')::date - days, form), 1
      from unnest(array[10, 399, 401, 4000]) days
      cross join unnest(array['YYYY-MM-DD', 'YYYY-MM']) form
      on conflict do nothing`;
    expect((await run("retention")).counts).toMatchObject({ pruned: 3 });
    const left = await sql<{ days: number }[]>`
      select (now() at time zone 'UTC')::date - day as days
      from usage_counts
      order by day desc`;
    expect(left.map(({ days }) => days)).toEqual([61, 63, 399]);
    const periods = await sql`
      select count(*) filter (where length(period) = 10)::integer as days,
        count(*) filter (where length(period) = 7 and period < '2020')::integer as old_months
      from quotas`;
    expect(periods[0]).toEqual({ days: 2, old_months: 1 });
    await sql`delete from usage_counts`;
    await sql`delete from quotas`;
    await sql`delete from keys`;
    await sql`delete from accounts`;
  });

  test("waits for no long reader, delays none, and leaves a locked row for the next hour", async () => {
    await makeDay(5);
    await payloads(5, {});
    const old = "now() - interval '91 days'";
    await sql.unsafe(`
      insert into notices (table_id, kind, text, opened_at, closed_at)
      select 1, 'gap', 'old ' || n, ${old}, ${old} from generate_series(1, 1200) n;
      insert into alerts (kind, subject, text, opened_at, closed_at) values ('disk', 'held', 'old', ${old}, ${old})`);
    await sql.begin("isolation level repeatable read", async (reader) => {
      const tables = Object.entries(RETENTION).filter(([name, { kept }]) => kept === "pruned" && !name.includes("."));
      for (const [name] of tables) await reader`select count(*) from ${reader(name)}`;
      await sql.begin(async (holder) => {
        await holder`select from alerts where subject = 'held' for update`;
        const { counts, lines } = await run("retention");
        // its day and the row that is held wait; all else was deleted, while both continue to read
        expect(counts).toMatchObject({ dropped: 0, waiting: 2, pruned: 1_200 });
        expect(lines.map(({ msg }) => msg)).toContainEqual(expect.stringMatching(/alerts .* is kept for another hour/));
      });
      const [seen] = await reader`select count(*)::integer as n from notices`;
      expect(seen).toEqual({ n: 1_200 });
    });
    expect((await run("retention")).counts).toMatchObject({ dropped: 1, waiting: 0, pruned: 1 });
  });

  test("has a rule for every table of the schema, and for no other", async () => {
    const rows = await sql<{ name: string }[]>`
      select case n.nspname when 'public' then c.relname else n.nspname || '.' || c.relname end as name
      from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p')
        and not c.relispartition
        and n.nspname in ('public', 'auth')
      order by name`;
    const ruled = Object.keys(RETENTION);
    expect(ruled.toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
    const byHousekeep = ruled.filter((name) => {
      const rule = RETENTION[name];
      return rule?.kept === "pruned" && rule.by === "housekeep";
    });
    expect(byHousekeep).toEqual(expect.arrayContaining([...PRUNED_BY_AGE, "calibrations", "payloads"]));
    expect(ruled.filter((name) => PRUNED_BY_AGE.includes(name) && !byHousekeep.includes(name))).toEqual([]);
  });

  test("forgets what has been settled for 90 days, and nothing that is open", async () => {
    const old = "now() - interval '91 days'";
    await sql.unsafe(`
      insert into quarantine (table_id, code, reason, item, item_sha256, state, last_seen_at, decided_at) values
        (1, 'a', 'x', '{}', '1', 'released', ${old}, ${old}), (1, 'a', 'x', '{}', '2', 'open', ${old}, null),
        (1, 'a', 'x', '{}', '3', 'discarded', now(), ${old}), (1, 'a', 'x', '{}', '4', 'released', ${old}, now());
      insert into notices (table_id, kind, text, opened_at, closed_at) values
        (1, 'gap', 'old', ${old}, ${old}), (1, 'gap', 'open', ${old}, null), (1, 'stuck', 'new', ${old}, now());
      insert into alerts (kind, subject, text, opened_at, closed_at) values
        ('disk', 'a', 'old', ${old}, ${old}), ('disk', 'b', 'open', ${old}, null), ('disk', 'c', 'new', ${old}, now())`);
    expect((await run("retention")).counts).toMatchObject({ pruned: 3 });
    expect(
      (await sql`select item_sha256 as name from quarantine order by 1`).map((row) => row["name"] as unknown),
    ).toEqual(["2", "3", "4"]);
    expect((await sql`select text from notices order by 1`).map((row) => row["text"] as unknown)).toEqual([
      "new",
      "open",
    ]);
    expect((await sql`select text from alerts order by 1`).map((row) => row["text"] as unknown)).toEqual([
      "new",
      "open",
    ]);
  });
});

describe("the disk", () => {
  test("that has room again closes its alert, and that of no other machine that has a worker", async () => {
    const folder = resolve(tmpdir());
    await sql`
      insert into alerts (kind, subject, text)
      values
        ('disk', ${`${hostname()}:${folder}`}, 'full'), ('disk', 'elsewhere:/data', 'full'), ('disk', 'gone:/data', 'full')`;
    await sql`insert into workers (id, pid, host, version, queues) values ('w', 1, 'elsewhere', '1', '{}')`;
    expect((await run("disk", { DATA_DIR: folder })).counts).toEqual({ low: 0 });
    const open = await sql`select subject from alerts where closed_at is null`;
    expect([...open]).toEqual([{ subject: "elsewhere:/data" }]);
  });

  test("of a former data folder closes its alert once every worker of the machine has restarted since", async () => {
    const former = `${hostname()}:/former`;
    await sql`truncate alerts, workers`;
    await sql`insert into alerts (kind, subject, text) values ('disk', ${former}, 'full')`;
    await sql`
      insert into workers (id, pid, host, version, queues, started_at)
      values ('w', 1, ${hostname()}, '1', '{}', now() - interval '1 day')`;
    const open = async () => {
      await run("disk", { DATA_DIR: resolve(tmpdir()) });
      return (await sql<{ subject: string }[]>`select subject from alerts where closed_at is null`).map(
        ({ subject }) => subject,
      );
    };
    expect(await open()).toEqual([former]);
    await sql`update workers set started_at = clock_timestamp()`;
    expect(await open()).toEqual([]);
  });
});

test("sums polls by house and day, again when they change, and forgets days that are no longer shown", async () => {
  const addPolls = (minutesAgo: number, statuses: string) => sql`
    insert into polls (house_id, shard, minute, requests, statuses, bytes, latency_ms)
    values (
      'alpha', ${minutesAgo}, ${today}::timestamp at time zone 'UTC', 10, ${statuses}::jsonb, 1, array_fill(0, '{10}')
    )`;
  const daySums = () =>
    sql<{ component: string; good: string; total: string }[]>`
      select component, good::text as good, total::text as total
      from uptime_days
      where day = ${today}
      order by component`;
  await sql`insert into uptime_days values ('house:alpha', current_date - 200, 1, 1)`;
  await addPolls(1, '{"200": 7, "304": 2, "503": 1}');
  await run("uptime");
  expect((await daySums()).find(({ component }) => component === "house:alpha")).toMatchObject({
    good: "9",
    total: "10",
  });
  await addPolls(2, '{"0": 10}');
  await run("uptime");
  const days = await daySums();
  expect(days.find(({ component }) => component === "house:alpha")).toMatchObject({ good: "9", total: "20" });
  const [left] = await sql`select count(*)::integer as days from uptime_days where day < current_date - 91`;
  expect(left).toEqual({ days: 0 });
});

test("keeps the history of the status page if the instance did not work two to eight days ago: the clock may be ahead", async () => {
  await sql`truncate uptime_days, uptime_minutes`;
  for (const days of [100, 9, 1, 0]) await workedAgo(days);
  await sql`insert into uptime_minutes values ('api', now() - interval '11 days')`;
  const kept = async () => [
    (await sql`select from uptime_days where day = ${today}::date - 100`).length,
    (await sql`select from uptime_minutes where component = 'api'`).length,
  ];
  await run("uptime");
  expect(await kept()).toEqual([1, 1]);
  await workedAgo(8);
  await sql`insert into uptime_minutes values ('scheduling', (${today}::date - 8)::timestamp at time zone 'UTC')`;
  await run("uptime");
  expect(await kept()).toEqual([0, 0]);
});

describe("the minutes in which a component reports", () => {
  const uptimeOf = (component: string, daysAgo: number) =>
    sql<{ good: number; total: number }[]>`
      select good::integer as good, total::integer as total
      from uptime_days
      where component = ${component}
        and day = ${today}::date - ${daysAgo}::integer`;
  beforeEach(async () => {
    await sql`truncate uptime_minutes, uptime_days`;
  });

  it("are summed by day, from the first report on; a minute without one counts as down", async () => {
    await sql`
      insert into uptime_minutes (component, minute)
      select 'api', ${today}::timestamp at time zone 'UTC' - n * interval '1 minute'
      from generate_series(1, 60) n
      where n not between 11 and 20`;
    await run("uptime");
    expect(await uptimeOf("api", 1)).toEqual([{ good: 50, total: 60 }]);
    expect(await uptimeOf("scheduling", 1)).toEqual([]);
    const [passed] = await sql<{ minutes: number }[]>`
      select (extract(epoch from now() - ${today}::timestamp at time zone 'UTC') / 60)::integer as minutes`;
    const [row] = await uptimeOf("api", 0);
    if ((passed?.minutes ?? 0) > 1) expect(row?.good).toBe(0);
    expect(Math.abs((row?.total ?? 0) - (passed?.minutes ?? 0))).toBeLessThanOrEqual(1);
  });

  it("of a component that was measured before count a whole day without reports", async () => {
    await sql`insert into uptime_days values ('parsing', ${today}::date - 3, 1440, 1440), ('api', ${today}::date - 1, 1, 1440)`;
    await run("uptime");
    expect(await uptimeOf("parsing", 1)).toEqual([{ good: 0, total: 1440 }]);
  });

  it("count an outage of days from its first minute, whatever was summed before it", async () => {
    const components = ["api", "parsing", "polling", "scheduling"];
    // summed last on the day before the outage, and at 11:00 on its first day
    await sql`
      insert into uptime_days
      select component, ${today}::date - days.ago, days.minutes, days.minutes
      from unnest(${components}::text[]) component, (values (4, 1440), (3, 660)) as days (ago, minutes)`;
    await sql`
      insert into uptime_minutes (component, minute)
      select component, (${today}::date - 4)::timestamp at time zone 'UTC' + n * interval '1 minute'
      from unnest(${components}::text[]) component, generate_series(0, 1440 + 719) n`;
    await run("uptime");
    for (const component of components) {
      expect(await uptimeOf(component, 4), component).toEqual([{ good: 1440, total: 1440 }]);
      expect(await uptimeOf(component, 3), component).toEqual([{ good: 720, total: 1440 }]);
      for (const daysAgo of [2, 1]) {
        expect(await uptimeOf(component, daysAgo), component).toEqual([{ good: 0, total: 1440 }]);
      }
    }
    await run("uptime"); // minutes of days that are summed again are not deleted before
    for (const component of components) {
      expect(await uptimeOf(component, 3), component).toEqual([{ good: 720, total: 1440 }]);
    }
  });

  it("are summed from the newest day with work, also if a clock that was ahead left later days, which are not shown", async () => {
    await sql`
      insert into uptime_days
      select 'scheduling', ${today}::date + days, case when days = -3 then 600 else 0 end, case when days = -3 then 600 else 1440 end
      from generate_series(-3, 5) days`;
    await sql`
      insert into uptime_minutes (component, minute)
      select 'scheduling', (${today}::date - 3)::timestamp at time zone 'UTC' + n * interval '1 minute'
      from generate_series(0, 719) n`;
    await run("uptime");
    expect(await uptimeOf("scheduling", 3)).toEqual([{ good: 720, total: 1440 }]);
    const shown = await sql.begin((tx) => listUptime(tx, ["scheduling"], 90));
    expect(shown.filter(({ day }) => day > today).length).toBeLessThanOrEqual(1); // midnight may come meanwhile
  });

  it("are noted for polling unless every house that is due is late", async () => {
    const isPolling = async () => {
      await sql`truncate uptime_minutes`;
      await noteWorkUptime(sql);
      return (await sql`select from uptime_minutes where component = 'polling'`).length > 0;
    };
    const polledAgo = (house: string, minutes: number) => sql`
      with polled as (
        update poll_leases set last_poll_at = clock_timestamp() - ${minutes} * interval '1 minute' where house_id = ${house}
      )
      update houses set updated_at = clock_timestamp() - interval '1 day' where id = ${house}`;
    await polledAgo("alpha", 60);
    await polledAgo("beta", 60);
    expect(await isPolling()).toBe(false);
    await polledAgo("beta", 0);
    expect(await isPolling()).toBe(true);
    await sql`update houses set poll_every_ms = 3600000`;
    await polledAgo("alpha", 50);
    await polledAgo("beta", 50);
    expect(await isPolling(), "both are polled once per hour").toBe(true);
    await sql`update poll_leases set next_allowed_at = clock_timestamp() + interval '1 minute', last_poll_at = clock_timestamp() - interval '1 day'`;
    expect(await isPolling(), "no house may be polled").toBe(true);
  });

  it("are noted for parsing only while no payload waits", async () => {
    await noteWorkUptime(sql);
    await noteWorkUptime(sql);
    // each is noted twice if another minute begins meanwhile
    const components = () =>
      sql`select distinct component from uptime_minutes where component <> 'polling' order by component`;
    expect(await components()).toEqual([{ component: "parsing" }, { component: "scheduling" }]);
    await sql`truncate uptime_minutes`;
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: [makeItem(1, 1.5)] }); // an hour old and unread
    await noteWorkUptime(sql);
    expect(await components()).toEqual([{ component: "scheduling" }]);
    await noteApiUptime(sql);
    expect(await components()).toEqual([{ component: "api" }, { component: "scheduling" }]);
  });

  it("are noted for parsing while the payloads of a damaged table are kept", async () => {
    const table = await makeTable(sql);
    await makePayload(sql, table, { second: 0, items: [makeItem(1, 1.5)] });
    await sql`update payloads set error = 'its head is damaged'`;
    await noteWorkUptime(sql);
    const noted = await sql`select from uptime_minutes where component = 'parsing'`;
    expect(noted).toHaveLength(1);
    expect(await sql.begin((tx) => readWork(tx))).toMatchObject({ unreadFor: null });
  });

  it("are deleted after three days", async () => {
    await workedAgo(2);
    await sql`insert into uptime_minutes values ('api', now() - interval '4 days'), ('api', now() - interval '1 day')`;
    await run("uptime");
    expect(await sql`select component from uptime_minutes`).toHaveLength(1);
  });
});

describe("housekeeping that fails", () => {
  const { context } = testContext(sql);
  const runner = createRunner({ job: housekeep, context, log: context.log, stop: new AbortController().signal });
  const attempt = async (attemptsMade: number, stalledCounter = 0) => {
    const queued = { name: "housekeep", data: { kind: "partitions" }, attemptsMade, repeatJobKey: "partitions" };
    await runner.process({ ...queued, stalledCounter } as QueuedRun, undefined, {
      signal: undefined,
      ending: context.ending,
    });
  };
  const alerts = () => sql`
    select subject, text, closed_at is null as "isOpen"
    from alerts
    where kind = 'housekeep'`;

  it("opens an alert after its last attempt, which the next run that succeeds closes", async () => {
    await sql`alter function make_day_partitions (date, integer) rename to make_no_partitions`;
    try {
      for (const attemptsMade of [0, 1]) {
        await expect(attempt(attemptsMade)).rejects.toThrow("make_day_partitions");
        expect(await alerts()).toEqual([]);
      }
      await expect(attempt(2)).rejects.toThrow("make_day_partitions");
      expect(await alerts()).toEqual([
        {
          subject: "partitions",
          text: expect.stringMatching(/make_day_partitions.* does not exist/) as string,
          isOpen: true,
        },
      ]);
    } finally {
      await sql`alter function make_no_partitions (date, integer) rename to make_day_partitions`;
    }
    await attempt(0);
    expect(await alerts()).toMatchObject([{ subject: "partitions", isOpen: false }]);
  });

  it("opens an alert when its process died too often while it ran", async () => {
    await sql`truncate alerts`;
    await expect(attempt(0, 3)).rejects.toThrow("its process died 3 times while it ran");
    expect(await alerts()).toEqual([
      {
        subject: "partitions",
        text: expect.stringContaining("its process died 3 times while it ran") as string,
        isOpen: true,
      },
    ]);
    await attempt(0);
    expect(await alerts()).toMatchObject([{ subject: "partitions", isOpen: false }]);
  });
});
