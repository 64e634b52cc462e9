import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Part, ROLES } from "../../src/db/roles/role-grants.ts";
import { createDatabase } from "../support/database.ts";

let database: Awaited<ReturnType<typeof createDatabase>>;
let owner: pg.Client;
beforeAll(async () => {
  database = await createDatabase();
  owner = new pg.Client(database.url);
  await owner.connect();
  await owner.query(`
    insert into auth.users (id, name, email, email_verified, surface)
    values ('boss', 'boss', 'boss@example.com', true, 'ops'), ('ann', 'ann', 'ann@example.com', true, 'console');
    insert into auth.accounts (id, account_id, provider_id, user_id, password)
    values ('boss', 'boss', 'credential', 'boss', 'hash'), ('ann', 'ann', 'credential', 'ann', 'hash');
    insert into auth.two_factors (id, secret, backup_codes, user_id)
    values ('boss', 'encrypted', 'encrypted', 'boss'), ('ann', 'encrypted', 'encrypted', 'ann');
    insert into operators (user_id, role, created_by) values ('boss', 'admin', 'test');
    insert into accounts (email, user_id, verified_at) values ('ann@example.com', 'ann', now());
    insert into accounts (email) values ('ben@example.com');
    insert into keys (account_id, name, sha256, last4, expires_at, revoked_at)
    select id, name, sha256(name::bytea), '0000', now() + interval '1 hour', case name when 'revoked' then now() end
    from accounts, (values ('revoked'), ('rotated'), ('newer')) named (name)
    where email = 'ben@example.com';
    update keys set replaced_by = (select id from keys where name = 'newer') where name = 'rotated';
    insert into ledger_accounts (kind, owner_id) select 'wallet', id from accounts;
    insert into entitlements (account_id, plan, ends_at) select id, 'Starter', now() + interval '9 days' from accounts where email = 'ben@example.com';
    insert into quotas (account_id, period, used) select id, '2026-11', 500000 from accounts;
    -- Ben's money, as it would be there from before
    begin;
    set local session_replication_role = replica;
    insert into ledger_transactions (kind, idempotency_key, request_hash) values ('topup', 'earlier', repeat('0', 64));
    update ledger_accounts set balance = -5000000 where kind = 'cash_bank';
    update ledger_accounts set balance = 5000000 where id = ${wallet("ben@example.com")};
    insert into ledger_entries (transaction_id, seq, account_id, amount, balance_after)
    select t.id, row_number() over (), l.id, l.balance, l.balance
    from ledger_transactions t, ledger_accounts l
    where l.balance <> 0;
    commit`);
});
afterAll(async () => {
  await owner.end();
  await database.drop();
});

/**
 * The result of statements that a role runs in one transaction: rows of the last one, or why they were refused. The owner
 * runs `prepared` before.
 */
async function attempt(part: Part, statements: string, prepared = ""): Promise<string> {
  await owner.query("begin");
  try {
    await owner.query(prepared);
    await owner.query(`set local role ${ROLES[part]}`);
    const results = await owner.query(statements);
    await owner.query("set constraints all immediate");
    const last = [results].flat().at(-1);
    return `${last?.rowCount ?? 0} rows`;
  } catch (error) {
    if (error instanceof pg.DatabaseError) return error.constraint ?? error.code ?? "";
    throw error;
  } finally {
    await owner.query("rollback");
  }
}

const DENIED = "42501";
const wallet = (email: string) =>
  `(select l.id from ledger_accounts l join accounts a on a.id = l.owner_id where a.email = '${email}')`;
const side = (kind: string) => `(select id from ledger_accounts where kind = '${kind}')`;

/** Moves 5 USD as any role may write it down: balances, a transaction of a kind, and two entries. */
function moving(kind: string, from: string, to: string): string {
  return `
    update ledger_accounts set balance = balance - 5000000 where id = ${from};
    update ledger_accounts set balance = balance + 5000000 where id = ${to};
    with made as (
      insert into ledger_transactions (kind, idempotency_key, request_hash)
      values ('${kind}', 'stolen', repeat('0', 64))
      returning id
    )
    insert into ledger_entries (transaction_id, seq, account_id, amount, balance_after)
    select made.id, leg.seq, l.id, leg.amount, l.balance + leg.before
    from made, (values (1, ${from}, -5000000, 0), (2, ${to}, 5000000, 0)) leg (seq, account, amount, before)
    join ledger_accounts l on l.id = leg.account`;
}

describe("[DATABASE-ROLES] one stolen login of the database", () => {
  it.each<Part>(["console", "ops", "worker"])("%s puts nothing into a wallet without a document", async (part) => {
    const mint = moving("topup", side("cash_bank"), wallet("ann@example.com"));
    expect(await attempt(part, mint)).toBe("transaction_has_its_document");
    const topup = `
      insert into topups (account_id, method, reference, state, amount_micros, credited_at, transaction_id)
      select a.id, 'bank', 'stolen', 'credited', 5000000, now(), t.id
      from accounts a, ledger_transactions t
      where a.email = 'ann@example.com' and t.idempotency_key = 'stolen'`;
    expect(await attempt(part, `${mint}; ${topup}`)).toBe(part === "console" ? DENIED : "transaction_has_its_document");
  });

  it.each<Part>(["console", "ops", "worker"])("%s moves nothing from one wallet to another", async (part) => {
    const move = moving("purchase", wallet("ben@example.com"), wallet("ann@example.com"));
    expect(await attempt(part, move)).toBe("transaction_has_its_document");
  });

  it.each<Part>(["console", "ops"])("%s revives no revoked key and does not prolong a rotated one", async (part) => {
    for (const until of ["null", "now() + interval '1 day'"]) {
      const revive = `update keys set revoked_at = ${until} where name = 'revoked'`;
      expect(await attempt(part, revive)).toBe("revoked_key_stays_revoked");
      const prolong = `update keys set expires_at = ${until} where name = 'rotated'`;
      expect(await attempt(part, prolong)).toBe(part === "console" ? "rotated_key_ends_no_later" : DENIED);
    }
    const unlink = "update keys set replaced_by = null where name = 'rotated'";
    expect(await attempt(part, unlink)).toBe(part === "console" ? "rotated_key_ends_no_later" : DENIED);
    expect(await attempt(part, "update keys set revoked_at = now() where name <> 'newer'")).toBe("2 rows");
    expect(await attempt("console", "update keys set name = 'other'")).toBe(DENIED);
  });

  it("console gives itself no plan, none for nothing and none for longer", async () => {
    const ann = "select id from accounts where email = 'ann@example.com'";
    const granted = `insert into entitlements (account_id, plan, starts_at, ends_at) select id, 'Max', now(), null from (${ann}) a`;
    expect(await attempt("console", granted)).toBe(DENIED);
    const bought = (price: number, days: number, ends: number, perDay = "day_limit") => `
      with made as (
        insert into purchases (account_id, idempotency_key, kind, plan, plan_revision, listed_micros, paid_micros, days,
          day_limit, month_limit, burst_per_second, burst, starts_at, ends_at, start_now_version, no_withdrawal_version)
        select a.id, 'k', 'buy', p.name, p.revision, ${price}, ${price}, ${days}, ${perDay}, month_limit, burst_per_second, burst, now(), now() + ${ends} * interval '1 day', '1', '1'
        from (${ann}) a, plans p where p.name = 'Max'
        returning id, account_id, plan, starts_at, ends_at
      )
      insert into entitlements (account_id, plan, starts_at, ends_at, purchase_id)
      select account_id, plan, starts_at, ends_at, id from made`;
    expect(await attempt("console", bought(0, 30, 30))).toBe("purchase_is_as_its_plan_was_listed");
    await owner.query("update plans set price_micros = 0 where name = 'Max'");
    try {
      expect(await attempt("console", bought(0, 30, 30))).toBe("1 rows");
      expect(await attempt("console", bought(0, 30, 300))).toBe("purchase_is_as_its_plan_was_listed");
      expect(await attempt("console", bought(0, 30, 30, "7"))).toBe("purchase_is_as_its_plan_was_listed");
      const longer = bought(0, 30, 30).replace(
        "starts_at, ends_at, id from made",
        "starts_at, ends_at + interval '1 year', id from made",
      );
      expect(await attempt("console", longer)).toBe("entitlement_is_what_was_bought");
    } finally {
      await owner.query("update plans set price_micros = 299000000 where name = 'Max'");
    }
    expect(await attempt("console", "update entitlements set ends_at = ends_at + interval '1 second'")).toBe(DENIED);
    expect(await attempt("ops", "update entitlements set ends_at = ends_at + interval '1 second'")).toBe(DENIED);
    expect(await attempt("console", "update entitlements set ends_at = null")).toBe(DENIED);
    expect(await attempt("console", "update entitlements set ends_at = ends_at - interval '1 second'")).toBe("1 rows");
  });

  describe("console gets for an earlier purchase", () => {
    const refused = "discount_is_what_was_left";
    /** Replaces the purchase `earlier` by Max. */
    const credited = (micros: number, { startsAt = "now()" } = {}) => `
      with made as (
        insert into purchases (account_id, idempotency_key, kind, plan, plan_revision, listed_micros, discount_micros,
          paid_micros, days, day_limit, month_limit, burst_per_second, burst, starts_at, ends_at, start_now_version,
          no_withdrawal_version)
        select id, 'again', 'upgrade', 'Max', p.revision, 299000000, ${micros}, 0, 30, day_limit, month_limit, burst_per_second, burst, ${startsAt}, ${startsAt} + interval '30 days', '1', '1'
        from plans p, (select id from accounts where email = 'ann@example.com') a
        where p.name = 'Max'
        returning id
      )
      insert into purchase_credits (purchase_id, of_purchase, micros)
      select made.id, p.id, ${micros} from made, purchases p where p.idempotency_key = 'earlier'`;
    /** A purchase of 30 days to which 598 USD were credited; or, if it was paid, for 299 USD by transaction -1. */
    const earlier = (startedDaysAgo: number, { plan = "Pro", isPaid = false, more = "" } = {}) => `
      set local session_replication_role = replica;
      insert into purchases (account_id, idempotency_key, kind, plan, plan_revision, listed_micros, discount_micros,
        paid_micros, days, day_limit, month_limit, burst_per_second, burst, starts_at, ends_at, start_now_version, no_withdrawal_version,
        transaction_id)
      select a.id, 'earlier', 'upgrade', p.name, p.revision, 299000000, ${isPaid ? "0, 299000000" : "598000000, 0"}, 30, day_limit, month_limit, burst_per_second, burst, start.at, start.at + interval '30 days', '1', '1', ${isPaid ? -1 : null}
      from plans p, accounts a, (select now() - ${startedDaysAgo} * interval '1 day' as at) start
      where p.name = '${plan}' and a.email = 'ann@example.com';
      ${more};
      set local session_replication_role = origin`;
    const given = `
      insert into entitlements (account_id, plan, starts_at, ends_at, purchase_id)
      select account_id, plan, starts_at, ends_at, id from purchases where idempotency_key = 'earlier'`;
    /** Transactions from -1 on, each of which reverses the one before. */
    const reversed = (times: number) => `
      insert into ledger_transactions (id, kind, idempotency_key, request_hash, reverses)
      overriding system value
      select -1 - n, case n when 0 then 'purchase' else 'reversal' end, 'reversed ' || n, repeat('0', 64), case when n > 0 then -n end
      from generate_series(0, ${times}) n`;

    it("no more than the value of its remaining time", async () => {
      expect(await attempt("console", credited(598_000_000), earlier(31))).toBe(refused);
      expect(await attempt("console", credited(299_000_000), earlier(31))).toBe(refused);
      // half an hour is worth 415,278: a quote is valid for so long
      expect(await attempt("console", credited(299_500_000), earlier(15))).toBe(refused);
      expect(await attempt("console", credited(299_400_000), earlier(15))).toBe("1 rows");
      const backdated = credited(598_000_000, { startsAt: "(now() - interval '15 days')" });
      expect(await attempt("console", backdated, earlier(15))).toBe(refused);
      expect(await attempt("console", credited(598_000_000), earlier(-1))).toBe("1 rows");
      // a row of them, each half an hour later, would give the full value each time
      const later = credited(598_000_000, { startsAt: "(now() + interval '30 minutes')" });
      expect(await attempt("console", later, earlier(0))).toBe(refused);
    });

    it("nothing towards the same plan once it has begun, again and again within the half hour of a quote", async () => {
      expect(await attempt("console", credited(598_000_000), earlier(0, { plan: "Max" }))).toBe(refused);
      expect(await attempt("console", credited(598_000_000), earlier(0, { plan: "Pro" }))).toBe("1 rows");
      expect(await attempt("console", credited(598_000_000), earlier(-1, { plan: "Max" }))).toBe("1 rows");
    });

    it("nothing while its plan continues, nor the plan after the credit", async () => {
      const paidAhead = earlier(-31, { more: given });
      expect(await attempt("console", credited(598_000_000), paidAhead)).toBe(refused);
      const ended = `delete from entitlements where purchase_id = (select id from purchases where idempotency_key = 'earlier')`;
      expect(await attempt("console", `${ended}; ${credited(598_000_000)}`, paidAhead)).toBe("1 rows");
      await owner.query(`begin; ${earlier(-31)}; commit`);
      try {
        expect(await attempt("console", given)).toBe("entitlement_is_what_was_bought");
      } finally {
        await owner.query(
          "begin; set local session_replication_role = replica; delete from purchases where idempotency_key = 'earlier'; commit",
        );
      }
    });

    it("nothing of a payment that was reversed, whatever a transaction of another isolation sees", async () => {
      const paid = (times: number) => earlier(0, { isPaid: true, more: reversed(times) });
      expect(await attempt("console", credited(299_000_000), paid(0))).toBe("1 rows");
      expect(await attempt("console", credited(299_000_000), paid(1))).toBe(refused);
      expect(await attempt("console", credited(299_000_000), paid(2))).toBe("1 rows");
      expect(await attempt("console", credited(299_000_000), paid(3))).toBe(refused);
      const repeatable = `set transaction isolation level repeatable read; ${paid(0)}`;
      expect(await attempt("console", credited(299_000_000), repeatable)).toBe(refused);
    });
  });

  it("console neither sees nor changes what operators prove who they are with", async () => {
    const session = `
      insert into auth.sessions (id, expires_at, token, updated_at, user_id, surface)
      values ('s', now() + interval '1 day', 'stolen', now(), 'boss', `;
    expect(await attempt("console", `${session}'ops')`)).toBe(DENIED);
    expect(await attempt("console", `${session}'console')`)).toBe("session_is_of_its_holders_surface");
    for (const table of ["two_factors", "accounts"]) {
      expect(await attempt("console", `delete from auth.${table} where user_id = 'boss'`)).toBe("0 rows");
      expect(await attempt("console", `delete from auth.${table} where user_id = 'ann'`)).toBe("1 rows");
      expect(await attempt("console", `select from auth.${table} where user_id = 'boss'`)).toBe("0 rows");
    }
    expect(await attempt("console", "update auth.accounts set password = 'stolen'")).toBe("1 rows");
    expect(await attempt("console", "update auth.users set surface = 'ops' where id = 'ann'")).toBe(DENIED);
    expect(
      await attempt("console", "insert into operators (user_id, role, created_by) values ('ann', 'admin', 'x')"),
    ).toBe(DENIED);
  });

  it("ops reads no password of a holder, and makes no sign-in in a holder's name", async () => {
    expect(await attempt("ops", "select password from auth.accounts where user_id = 'ann'")).toBe("0 rows");
    expect(await attempt("ops", "update auth.accounts set password = 'stolen'")).toBe("1 rows");
    const session = `
      insert into auth.sessions (id, expires_at, token, updated_at, user_id, surface)
      values ('s', now() + interval '1 day', 'stolen', now(), 'ann', 'console')`;
    expect(await attempt("ops", session)).toBe(DENIED);
  });

  it("ops makes no admin", async () => {
    const user = `insert into auth.users (id, name, email, email_verified, surface) values ('eve', 'eve', 'eve@example.com', true, 'ops')`;
    const made = (role: string) =>
      `${user}; insert into operators (user_id, role, created_by) values ('eve', '${role}', 'x')`;
    expect(await attempt("ops", made("admin"))).toBe(DENIED);
    expect(await attempt("ops", made("operator"))).toBe("1 rows");
    expect(await attempt("ops", `${made("operator")}; update operators set role = 'admin' where user_id = 'eve'`)).toBe(
      DENIED,
    );
    expect(await attempt("ops", "update operators set disabled_at = now() where user_id = 'boss'")).toBe("1 rows");
  });

  it("console and worker read no bank statement, and worker no payer", async () => {
    for (const part of ["console", "worker"] as const) {
      expect(await attempt(part, "select body from bank_imports")).toBe(DENIED);
      expect(await attempt(part, "select reason from bank_returns")).toBe(DENIED);
      expect(await attempt(part, "select note from bank_matches")).toBe(DENIED);
    }
    expect(await attempt("worker", "select sender from bank_lines")).toBe(DENIED);
    expect(await attempt("worker", "select remittance from bank_lines")).toBe(DENIED);
  });

  it("worker takes no count of calls out, and api resets no quota and reads no address", async () => {
    expect(await attempt("worker", "truncate usage_facts")).toBe(DENIED);
    expect(await attempt("worker", "delete from usage_facts")).toBe(DENIED);
    expect(await attempt("worker", "alter table usage_facts disable trigger all")).toBe(DENIED);
    expect(await attempt("worker", "select drop_day('usage_facts', (now() at time zone 'UTC')::date)")).toBe("P0001");
    expect(await attempt("worker", "delete from quotas where period = '2026-11'")).toBe("0 rows");
    expect(await attempt("api", "update quotas set used = 0")).toBe(DENIED);
    expect(await attempt("api", "insert into usage_facts select from usage_facts where false")).toBe(DENIED);
    expect(await attempt("api", "select email from accounts")).toBe(DENIED);
    expect(await attempt("api", "select * from consume_calls(array[1]::bigint[], array['/x'], array[1])")).toBe(
      "1 rows",
    );
    for (const part of ["console", "ops", "worker", "read"] as const) {
      const calls = "select * from consume_calls(array[1]::bigint[], array['/x'], array[1])";
      expect(await attempt(part, calls)).toBe(DENIED);
    }
  });

  it("worker owns no table on which the owner of the schema would run its code", async () => {
    for (const table of ["payloads", "polls", "poll_failures", "call_minutes", "usage_facts"]) {
      expect(await attempt("worker", `alter table ${table} add constraint stolen check (current_user <> '')`)).toBe(
        DENIED,
      );
      expect(await attempt("worker", `alter table ${table} detach partition ${table}_default`)).not.toBe("0 rows");
      expect(await attempt("worker", `create rule stolen as on insert to ${table} do also select 1`)).toBe(DENIED);
      expect(await attempt("worker", `truncate ${table}`)).toBe(DENIED);
    }
    const { rows } = await owner.query(
      "select relname from pg_class where pg_get_userbyid(relowner) = any($1::text[])",
      [Object.values(ROLES)],
    );
    expect(rows).toEqual([]);
  });

  it("worker drops no day that is kept", async () => {
    expect(await attempt("worker", "select drop_day('polls', '2020-01-01')")).toBe("P0001"); // nothing worked lately
    await owner.query("insert into uptime_days values ('scheduling', (now() at time zone 'UTC')::date - 2, 1, 1)");
    const kept = { payloads: 0, call_minutes: 1, polls: 14, poll_failures: 14, usage_facts: 59 };
    for (const [table, days] of Object.entries(kept)) {
      const drop = `select drop_day('${table}', (now() at time zone 'UTC')::date - ${days})`;
      expect([table, await attempt("worker", drop)]).toEqual([table, "P0001"]);
      expect([table, await attempt("worker", `select drop_day('${table}', '2020-01-01')`)]).toEqual([table, "1 rows"]);
    }
    expect(await attempt("worker", "select drop_day('rounds', '2020-01-01')")).toBe("P0001");
    const unread = `
      select make_day_partitions('2026-01-01', 1);
      set local session_replication_role = replica;
      insert into payloads (table_id, received_at, kind, requested_at, path, status, bytes, sha256, body, state)
      values (1, '2026-01-01', 'poll', '2026-01-01', '/', 200, 0, sha256(''), '', 'unread');
      set local session_replication_role = origin`;
    expect(await attempt("worker", "select drop_day('payloads', '2026-01-01')", unread)).toBe("P0001");
    const read = unread
      .replace("'unread')", "'read')")
      .replace("body, state)", "body, state, read_at)")
      .replace("'read')", "'read', now())");
    expect(await attempt("worker", "select drop_day('payloads', '2026-01-01')", read)).toBe("1 rows");
  });

  it("no role makes a temporary table, a schema or a function", async () => {
    const makes = [
      "create temporary table mine (a integer)",
      "create schema mine",
      "create function public.mine() returns integer language sql as 'select 1'",
      "create function auth.mine() returns integer language sql as 'select 1'",
    ];
    for (const part of ["api", "console", "ops", "worker", "read"] as const) {
      for (const make of makes) expect([part, make, await attempt(part, make)]).toEqual([part, make, DENIED]);
    }
  });

  it("a temporary table stands for no table that a trigger reads", async () => {
    const free = `
      create temporary table plans as select * from public.plans;
      update pg_temp.plans set price_micros = 0;
      grant select on pg_temp.plans to ${ROLES.console}`;
    const bought = `
      insert into purchases (account_id, idempotency_key, kind, plan, plan_revision, listed_micros, paid_micros, days,
        day_limit, month_limit, burst_per_second, burst, starts_at, ends_at, start_now_version, no_withdrawal_version)
      select a.id, 'k', 'buy', p.name, p.revision, 0, 0, 30, day_limit, month_limit, burst_per_second, burst, now(), now() + interval '30 days', '1', '1'
      from accounts a, plans p
      where a.email = 'ann@example.com' and p.name = 'Max'`;
    expect(await attempt("console", bought, free)).toBe("purchase_is_as_its_plan_was_listed");
  });

  it("read and api see no account, address or amount in an alert", async () => {
    const opened = `
      insert into alerts (kind, subject, text)
      select kind, 'x', 'account 7 sent 29 USD to 0xabc'
      from unnest(array['suspense', 'bank_approval', 'usdt', 'payment-app', 'topup', 'ledger', 'usage', 'housekeep', 'a new kind', 'disk']) kind`;
    expect(await attempt("read", "select kind, subject, text from alerts", opened)).toBe("1 rows");
    expect(await attempt("api", "select kind from alerts where closed_at is null", opened)).toBe("10 rows");
    for (const column of ["subject", "text"])
      expect(await attempt("api", `select ${column} from alerts`, opened)).toBe(DENIED);
    expect(await attempt("read", "select from snoozes")).toBe(DENIED);
    expect(await attempt("worker", "update alerts set closed_at = now()", opened)).toBe("10 rows");
    expect(await attempt("ops", "select text from alerts", opened)).toBe("10 rows");
  });

  it("a surface writes into the audit log in its own name alone", async () => {
    const entry = (surface: string, role: string) => `
      insert into audit_log (seq, at, surface, actor, role, action, target, prev_hash, hash)
      values (1, now(), '${surface}', 'boss@example.com', ${role}, 'x.y', 'z', 'a', 'b')`;
    expect(await attempt("console", entry("ops", "'admin'"))).toBe(DENIED);
    expect(await attempt("worker", entry("ops", "'admin'"))).toBe(DENIED);
    expect(await attempt("console", entry("console", "null"))).toBe("1 rows");
    expect(await attempt("ops", entry("console", "null"))).toBe(DENIED);
  });
});

it("[DATABASE-ROLES] every function of the schema finds its tables without the search path of its caller", async () => {
  const { rows } = await owner.query<{ name: string }>(`
    select p.oid::regprocedure::text as name
    from pg_proc p
    where p.pronamespace in ('public'::regnamespace, 'auth'::regnamespace)
      and p.prosqlbody is null -- otherwise names were resolved when it was created
      and not exists (select from unnest(p.proconfig) setting where setting like 'search_path=%')
    order by 1`);
  expect(rows).toEqual([]);
});

/** Runs each statement as the current role and rolls it back: whether the role may. */
const TRIES = `
  create or replace function pg_temp.tries(statements text[], is_strict boolean) returns boolean[] language plpgsql as $$
  declare
    statement text;
    outcomes boolean[] := '{}';
  begin
    foreach statement in array statements loop
      begin
        execute statement;
        raise exception using errcode = 'TRY01';
      exception
        when insufficient_privilege then outcomes := outcomes || false;
        when sqlstate 'TRY01' then outcomes := outcomes || true;
        when others then
          if is_strict then raise; end if;
          outcomes := outcomes || true; -- a function that was called, with nulls
      end;
    end loop;
    return outcomes;
  end $$`;

const PARTS = ["api", "console", "ops", "worker", "read"] as const;
const DOCUMENT = join(import.meta.dirname, "../../docs/database-roles.md");

async function triedAs(part: Part, statements: readonly string[], isStrict = true): Promise<boolean[]> {
  await owner.query(`begin; set local role ${ROLES[part]}`);
  const { rows } = await owner.query<{ tries: boolean[] }>("select pg_temp.tries($1, $2)", [statements, isStrict]);
  await owner.query("rollback");
  return rows[0]?.tries ?? [];
}

/** What a role may do with a table, in the letters of the documentation. */
async function triedTable(part: Part, table: string, columns: { name: string; isWritable: boolean }[]) {
  const writable = columns.filter(({ isWritable }) => isWritable).map(({ name }) => name);
  const perColumn: [string, string[], (column: string) => string][] = [
    ["r", columns.map(({ name }) => name), (column) => `select ${column} from ${table} limit 1`],
    ["a", writable, (column) => `insert into ${table} (${column}) select null where false`],
    ["w", writable, (column) => `update ${table} set ${column} = null where false`],
  ];
  const privileges: string[] = [];
  for (const [letter, names, statement] of perColumn) {
    const tried = await triedAs(part, names.map(statement));
    const allowed = names.filter((_, at) => tried[at]);
    if (allowed.length > 0)
      privileges.push(allowed.length === names.length ? letter : `${letter}(${allowed.join(", ")})`);
  }
  if (writable.length === 0) return privileges.join(" "); // a view
  const [deletes, truncates] = await triedAs(part, [`delete from ${table} where false`, `truncate ${table}`]);
  return [...privileges, ...(deletes ? ["d"] : []), ...(truncates ? ["t"] : [])].join(" ");
}

it("[DATABASE-ROLES] each role may do with every table and function what docs/database-roles.md lists", async () => {
  await owner.query(TRIES);
  const { rows: tables } = await owner.query<{ name: string; columns: { name: string; isWritable: boolean }[] }>(`
    select
      case n.nspname when 'public' then '' else n.nspname || '.' end || c.relname as name,
      json_agg(json_build_object('name', quote_ident(a.attname), 'isWritable',
        a.attgenerated = '' and a.attidentity <> 'a' and c.relkind in ('r', 'p')) order by a.attnum) as columns
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where n.nspname in ('public', 'auth') and c.relkind in ('r', 'p', 'v') and (not c.relispartition or c.relname = 'usage_facts_default')
    group by 1
    order by 1`);
  const lines = [`| table | ${PARTS.join(" | ")} |`, `| --- |${" --- |".repeat(PARTS.length)}`];
  for (const { name, columns } of tables) {
    const cells: string[] = [];
    for (const part of PARTS) cells.push(await triedTable(part, name, columns));
    lines.push(`| \`${name}\` | ${cells.join(" | ")} |`);
  }
  const { rows: functions } = await owner.query<{ name: string; nulls: string }>(`
    select
      p.proname as name,
      (select coalesce(string_agg('null::' || format_type(t, null), ', ' order by at), '')
        from unnest(p.proargtypes) with ordinality a (t, at)) as nulls
    from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.prorettype <> 'trigger'::regtype
    order by 1`);
  const calls = functions.map(({ name, nulls }) => `select * from ${name}(${nulls})`);
  const byPart: boolean[][] = [];
  for (const part of PARTS) byPart.push(await triedAs(part, calls, false));
  lines.push("", "| function | may be called by |", "| --- | --- |");
  for (const [at, { name }] of functions.entries()) {
    const callers = PARTS.filter((_, column) => byPart[column]?.[at]);
    lines.push(
      `| \`${name}\` | ${callers.length === PARTS.length ? "all" : callers.join(", ") || "the owner alone"} |`,
    );
  }
  const text = readFileSync(DOCUMENT, "utf8");
  const [before, after] = [text.indexOf("| table |"), text.indexOf("\n\n", text.indexOf("| function |"))];
  if (process.env["WRITE_DOCS"] === "1") {
    writeFileSync(DOCUMENT, text.slice(0, before) + lines.join("\n") + text.slice(after));
  } else {
    expect(text.slice(before, after)).toBe(lines.join("\n"));
  }
});
