import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import housekeep from "../../jobs/housekeep.ts";
import { checkLedger } from "../../src/ledger/check.ts";
import * as money from "../../src/money.ts";
import { assertPosting } from "../../src/ledger/posting.ts";
import { post, walletMicros, type Posted, type Posting } from "../../src/ledger/store.ts";
import { testContext } from "../support/context.ts";
import { listExamples, runExample } from "../support/examples.ts";
import { openLedgerWorld, placement, purchase, suspense, topup, type LedgerWorld } from "./world.ts";

let world: LedgerWorld;
beforeAll(async () => void (world = await openLedgerWorld()));
afterAll(() => world.close());

describe("money", () => {
  it.each(listExamples("src/money.ts").map((example) => [example.title, example] as const))(
    "the example of %s is true",
    (_, example) => {
      for (const { actual, ...claim } of runExample(example, { ...money })) {
        expect({ ...claim, actual }).toEqual({ ...claim, actual: claim.expected });
      }
    },
  );

  it("is read back as it is shown, to the last micro-unit", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 18n - 1n }), (micros) => {
        expect(money.parseUsd(money.usd(micros))).toBe(micros);
        expect(money.usd(micros)).toMatch(/^\d+\.\d{2,6}$/);
      }),
    );
  });

  it("is refused beyond what the database holds", () => {
    expect(() => money.sumMicros([2n ** 63n - 1n, 1n])).toThrow(
      /expected an amount of at most 9223372036854\.775807 USD/,
    );
  });
});

describe("a posting", () => {
  it("makes a wallet on first use and moves what one side loses to the other", async () => {
    const owner = await world.account();
    expect(await walletMicros(world.sql, owner)).toBe(0n);
    expect(await world.book(topup(owner, 29_000_000n, "first"))).toMatchObject({ ok: true, isReplay: false });
    expect(await walletMicros(world.sql, owner)).toBe(29_000_000n);
  });

  it("gives the old transaction for a repeated request, and refuses another one under its key", async () => {
    const owner = await world.account();
    const first = await world.book(topup(owner, 5n, "again"));
    expect(await world.book(topup(owner, 5n, "again"))).toEqual({ ...first, isReplay: true });
    expect(await world.book(topup(owner, 6n, "again"))).toMatchObject({ ok: false, reason: "other-request" });
    expect(await walletMicros(world.sql, owner)).toBe(5n);
  });

  it("that would overdraw is refused with balance and amount, writes nothing, and leaves its transaction usable", async () => {
    const owner = await world.account();
    await world.book(topup(owner, 3_000_000n, "little"));
    const [refused, done] = await world.sql.begin(async (tx) => [
      await post(tx, purchase(owner, 29_000_000n, "too-much")),
      await post(tx, purchase(owner, 1_000_000n, "enough")),
    ]);
    const message = `wallet ${owner} holds 3.00 USD, and 29.00 USD were to be taken from it: nothing was moved`;
    expect(refused).toEqual({ ok: false, reason: "overdraft", message });
    expect(done).toMatchObject({ ok: true });
    expect(await walletMicros(world.sql, owner)).toBe(2_000_000n);
    expect(await world.sql`select 1 from ledger_transactions where idempotency_key = 'too-much'`).toHaveLength(0);
  });

  it("of twenty concurrent purchases with money for one, one is done; of twenty under one key, one buys", async () => {
    const owner = await world.account();
    await world.book(topup(owner, 29n, "for-one"));
    const bought = await Promise.all(
      Array.from({ length: 20 }, (_, n) => world.book(purchase(owner, 29n, `buy-${n}`))),
    );
    expect(bought.filter(({ ok }) => ok)).toHaveLength(1);
    await world.book(topup(owner, 100n, "for-more"));
    const clicked = await Promise.all(Array.from({ length: 20 }, () => world.book(purchase(owner, 29n, "click"))));
    expect(clicked.filter((one) => one.ok && !one.isReplay)).toHaveLength(1);
    expect(new Set(clicked.map((one) => one.ok && one.transactionId)).size).toBe(1);
    expect(await walletMicros(world.sql, owner)).toBe(71n);
  });

  const wallet = { kind: "wallet", owner: 1n } as const;
  it.each<[string, Partial<Posting>, RegExp]>([
    [
      "does not balance",
      {
        legs: [
          { side: { kind: "cash_bank" }, micros: -2n },
          { side: wallet, micros: 1n },
        ],
      },
      /sum 0, got -1/,
    ],
    ["has one leg", { legs: [{ side: wallet, micros: 0n }] }, /two legs or more, got 1/],
    [
      "moves nothing",
      {
        legs: [
          { side: { kind: "cash_bank" }, micros: 0n },
          { side: wallet, micros: 0n },
        ],
      },
      /got one of 0/,
    ],
    [
      "names a side twice",
      {
        legs: [
          { side: wallet, micros: -2n },
          { side: wallet, micros: 2n },
        ],
      },
      /each side once/,
    ],
    [
      "takes money out again",
      {
        legs: [
          { side: wallet, micros: -2n },
          { side: { kind: "cash_bank" }, micros: 2n },
        ],
      },
      /expected a topup from \^cash_/,
    ],
    ["reverses under another name", { reverses: 4n }, /reversals, and nothing else/],
    ["has no key", { key: "" }, /a key of 1 to 200 characters/],
  ])("that %s is a fault of the program", (_, wrong, message) => {
    expect(() => assertPosting({ ...topup(1n, 5n, "key"), ...wrong })).toThrow(message);
  });
});

describe("a check", () => {
  const ids = { OWNER: 0n, BOUGHT: 0n, WRONG: 0n, REVERSAL: 0n };
  const TABLES = {
    ledger_accounts: "id, kind, owner_id, currency, balance",
    ledger_transactions: "id, kind, idempotency_key, request_hash, meta, reverses, created_at",
    ledger_entries: "transaction_id, seq, account_id, amount, balance_after",
  };
  beforeAll(async () => {
    ids.OWNER = await world.account();
    await world.book(topup(ids.OWNER, 100n, "to tamper with"));
    ids.BOUGHT = await world.booked(purchase(ids.OWNER, 40n, "bought"));
    ids.WRONG = await world.booked(topup(ids.OWNER, 9n, "by mistake"));
    const legs = topup(ids.OWNER, -9n, "").legs;
    ids.REVERSAL = await world.booked({ kind: "reversal", key: "taken back", legs, reverses: ids.WRONG });
    await world.book(suspense(3n, "nobody's yet"));
    for (const [table, columns] of Object.entries(TABLES)) {
      await world.sql.unsafe(`create table saved_${table} as select ${columns} from ${table}`);
    }
  });

  const named = (text: string) =>
    text.replaceAll(/OWNER|BOUGHT|WRONG|REVERSAL/g, (name) => String(ids[name as keyof typeof ids]));
  /** As whoever owns the database can: without triggers, and without the rule against overdrafts. */
  async function tamper(statement: string): Promise<void> {
    await world.sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`alter table ledger_accounts drop constraint there_is_no_overdraft`;
      await tx.unsafe(named(statement));
    });
  }
  async function mend(): Promise<void> {
    await world.sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      for (const [table, columns] of Object.entries(TABLES)) {
        await tx.unsafe(`delete from ${table}`);
        await tx.unsafe(
          `insert into ${table} (${columns}) overriding system value select ${columns} from saved_${table}`,
        );
      }
      await tx`
        alter table ledger_accounts
        add constraint there_is_no_overdraft check (allow_negative or balance >= 0)`;
    });
  }
  const found = async () =>
    (await checkLedger(world.sql)).differences.map(({ kind, subject }) => `${kind}: ${subject}`);

  const wallet = "(select id from ledger_accounts where kind = 'wallet' and owner_id = OWNER)";
  it.each([
    [
      "a balance that was raised",
      "update ledger_accounts set balance = balance + 5 where kind = 'wallet' and owner_id = OWNER",
      ["balance: wallet OWNER", "chain: wallet OWNER after transaction REVERSAL", "sum: all accounts"],
    ],
    [
      "an entry that was made smaller",
      `update ledger_entries set amount = amount + 5 where transaction_id = BOUGHT and account_id = ${wallet}`,
      [
        "balance: wallet OWNER",
        "transaction: transaction BOUGHT",
        "chain: wallet OWNER after transaction BOUGHT",
        "request: transaction BOUGHT",
      ],
    ],
    [
      "a purchase that was made smaller on both sides, with everything after it",
      `update ledger_entries set amount = sign(amount) * 35 where transaction_id = BOUGHT;
       update ledger_entries e set balance_after = balance_after + case when a.kind = 'wallet' then 5 else -5 end
       from ledger_accounts a where a.id = e.account_id and e.transaction_id >= BOUGHT and (a.kind = 'revenue' or a.owner_id = OWNER);
       update ledger_accounts set balance = balance + case when kind = 'wallet' then 5 else -5 end
       where kind = 'revenue' or owner_id = OWNER`,
      ["request: transaction BOUGHT"],
    ],
    [
      "entries that were deleted",
      "delete from ledger_entries where transaction_id = BOUGHT",
      [
        "balance: revenue",
        "balance: wallet OWNER",
        "transaction: transaction BOUGHT",
        "chain: wallet OWNER after transaction WRONG",
        "request: transaction BOUGHT",
      ],
    ],
    [
      "what an entry left",
      `update ledger_entries set balance_after = 1 where transaction_id = BOUGHT and account_id = ${wallet}`,
      ["chain: wallet OWNER after transaction BOUGHT"],
    ],
    [
      "a wallet that was below zero",
      `update ledger_entries set balance_after = -3 where transaction_id = BOUGHT and account_id = ${wallet}`,
      ["negative: wallet OWNER", "chain: wallet OWNER after transaction BOUGHT"],
    ],
    [
      "a movement that its kind never does",
      "update ledger_transactions set kind = 'topup' where id = BOUGHT",
      ["way: transaction BOUGHT", "request: transaction BOUGHT"],
    ],
    [
      "a reversal of something else",
      "update ledger_transactions set reverses = BOUGHT where id = REVERSAL",
      ["reversal: transaction REVERSAL", "request: transaction REVERSAL"],
    ],
    [
      "a key under which the same could come again",
      "update ledger_transactions set idempotency_key = 'another' where id = BOUGHT",
      ["request: transaction BOUGHT"],
    ],
    [
      "what a purchase was for",
      `update ledger_transactions set meta = '{"plan":"Max"}' where id = BOUGHT`,
      ["request: transaction BOUGHT"],
    ],
  ])("finds %s", async (_, statement, expected) => {
    await tamper(statement);
    try {
      expect(await found()).toEqual(expect.arrayContaining(expected.map(named)));
    } finally {
      await mend();
    }
    expect(await found()).toEqual([]);
  });

  it("keeps an alert open for each difference, and closes it when that is gone", async () => {
    const alerts = () => world.sql`select subject from alerts where kind = 'ledger' and closed_at is null order by 1`;
    const { context } = testContext(world.sql);
    await tamper("update ledger_accounts set balance = balance + 5 where kind = 'revenue'");
    try {
      expect((await housekeep.run({ kind: "ledger" }, context)).differences).toBe(3);
      expect(await alerts()).toEqual(
        ["balance revenue", expect.stringMatching(/^chain revenue after/), "sum all accounts"].map((subject) => ({
          subject: subject as string,
        })),
      );
    } finally {
      await mend();
    }
    expect(await housekeep.run({ kind: "ledger" }, context)).toMatchObject({ differences: 0 });
    expect(await alerts()).toEqual([]);
    await expect(housekeep.schedule?.(context)).resolves.toContainEqual({
      payload: { kind: "ledger" },
      everyMs: 86_400_000,
      offsetMs: 13_260_000,
    });
  });
});

describe("the database itself", () => {
  const NEW_TRANSACTION =
    "insert into ledger_transactions (kind, idempotency_key, request_hash) values ('suspense', 'by hand', repeat('0', 64)) returning id";
  const entriesOf = (left: string) => `
    select made.id, row_number() over (), a.id, amount, ${left}
    from made, ledger_accounts a, lateral (select case a.kind when 'suspense' then 5 else -5 end as amount) moved
    where a.kind in ('suspense', 'cash_payapp')`;
  let owner: bigint;
  beforeAll(async () => {
    owner = await world.account();
    await world.book(topup(owner, 100n, "held"));
  });

  it.each([
    "update ledger_transactions set kind = 'suspense'",
    "delete from ledger_transactions",
    "update ledger_entries set amount = amount + 1",
    "delete from ledger_entries",
    "truncate ledger_entries",
    "truncate ledger_transactions cascade",
    "delete from ledger_accounts",
    "truncate ledger_accounts cascade",
  ])("refuses %s", async (statement) => {
    await expect(world.sql.unsafe(statement)).rejects.toThrow(/is only ever added to/);
  });

  it.each([
    [
      "a balance that no entry gives",
      "update ledger_accounts set balance = balance + 1 where kind = 'revenue'",
      /a balance equals that of the newest entry/,
    ],
    [
      "an account that becomes another",
      "update ledger_accounts set kind = 'suspense' where kind = 'revenue'",
      /stays what it is/,
    ],
    [
      "a transaction without entries",
      "insert into ledger_transactions (kind, idempotency_key, request_hash) values ('topup', 'bare', repeat('0', 64))",
      /0 entries with the sum/,
    ],
    [
      "an entry more for an old transaction",
      `with entry as (
         insert into ledger_entries
         select max(t.id), 9, min(a.id), 5, min(a.balance) + 5 from ledger_transactions t, ledger_accounts a where a.kind = 'revenue'
       )
       update ledger_accounts set balance = balance + 5 where kind = 'revenue'`,
      /3 entries with the sum 5/,
    ],
    [
      "entries that no balance follows",
      `with made as (${NEW_TRANSACTION}) insert into ledger_entries ${entriesOf("a.balance + amount")}`,
      /a balance equals that of the newest entry/,
    ],
    [
      "a balance that does not follow from the one before",
      `with made as (${NEW_TRANSACTION}), entries as (insert into ledger_entries ${entriesOf("100 * amount")})
       update ledger_accounts set balance = case kind when 'suspense' then 500 else -500 end where kind in ('suspense', 'cash_payapp')`,
      /an entry leaves what was there before it and what it moved/,
    ],
    [
      "entries before those that are there",
      `insert into ledger_entries
       select min(t.id), 8, (select id from ledger_accounts where kind = 'revenue'), 5, 5 from ledger_transactions t
       union all
       select min(t.id), 9, (select id from ledger_accounts where kind = 'cash_payapp'), -5, -5 from ledger_transactions t`,
      /an entry is added after those that are there/,
    ],
  ])("refuses %s at commit", async (_, statement, message) => {
    await expect(world.sql.unsafe(statement)).rejects.toThrow(message);
  });

  it("refuses a reversal that moves other than what it reverses", async () => {
    const moved = await world.booked(topup(owner, 7n, "to reverse"));
    const legs = topup(owner, -6n, "").legs;
    await expect(world.book({ kind: "reversal", key: "partly", legs, reverses: moved })).rejects.toThrow(
      /does not mirror/,
    );
  });
});

describe("thousands of concurrent operations", () => {
  const OWNERS = 4;
  const owner = fc.nat({ max: OWNERS - 1 });
  const amount = fc.integer({ min: 1, max: 50 });
  // few keys, so that many requests come again, with the same values or others
  const key = fc.nat({ max: 60 });
  const operation = fc.record({
    act: fc.constantFrom("topup", "topup", "purchase", "purchase", "suspense", "placement", "reversal"),
    owner,
    amount,
    key,
    undo: fc.nat({ max: 9 }),
  });

  it("leave every sum at zero, no wallet below it, each key used once, and a ledger that checks", async () => {
    let run = 0;
    let asked = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 100, maxLength: 200, size: "max" }), async (operations) => {
        run += 1;
        const owners = await Promise.all(Array.from({ length: OWNERS }, () => world.account()));
        const done: { key: string; posted: Posted; posting: Posting }[] = [];
        const before = await cashAndRest();
        const requests = operations.map(({ act, owner: at, amount: size, key: name, undo }) => {
          const [whose, micros, text] = [owners[at] ?? 0n, BigInt(size), `run ${run} ${act} ${name}`];
          return async () => {
            const posting = postingOf(act, { whose, micros, text, earlier: done });
            if (posting === null) return;
            const posted = await world.sql
              .begin(async (tx) => {
                const outcome = await post(tx, posting);
                if (undo === 0) throw new Error("undone"); // what was posted goes with its transaction
                return outcome;
              })
              .catch((error: unknown) => {
                if (error instanceof Error && /undone|ledger_transactions_reverses_key/.test(error.message))
                  return null;
                throw error;
              });
            asked += 1;
            if (posted !== null) done.push({ key: posting.key, posted, posting });
          };
        });
        await eightAtATime(requests);

        const accepted = done.filter(({ posted }) => posted.ok && !posted.isReplay);
        expect(new Set(accepted.map((one) => one.key)).size).toBe(accepted.length);
        for (const { key: again, posted } of done) {
          if (!posted.ok || !posted.isReplay) continue;
          const first = accepted.find((one) => one.key === again);
          expect(first?.posted).toMatchObject({ transactionId: posted.transactionId });
        }
        for (const whose of owners) {
          const moved = accepted
            .flatMap(({ posting }) => posting.legs)
            .filter(({ side }) => side.kind === "wallet" && side.owner === whose);
          expect(await walletMicros(world.sql, whose)).toBe(moved.reduce((sum, { micros }) => sum + micros, 0n));
        }
        expect((await cashAndRest()) - before).toBe(0n);
        expect((await checkLedger(world.sql)).differences).toEqual([]);
      }),
      { numRuns: 15, endOnFailure: true },
    );
    expect(asked).toBeGreaterThan(1_500);
  });

  async function cashAndRest(): Promise<bigint> {
    const [sum] = await world.sql<{ total: bigint }[]>`select sum(balance)::bigint as total from ledger_accounts`;
    return sum?.total ?? 0n;
  }

  async function eightAtATime(work: (() => Promise<void>)[]): Promise<void> {
    const waiting = work.values();
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (const one of waiting) await one();
      }),
    );
  }

  function postingOf(
    act: string,
    {
      whose,
      micros,
      text,
      earlier,
    }: { whose: bigint; micros: bigint; text: string; earlier: readonly { posted: Posted; posting: Posting }[] },
  ): Posting | null {
    if (act === "topup") return topup(whose, micros, text);
    if (act === "purchase") return purchase(whose, micros, text);
    if (act === "suspense") return suspense(micros, text);
    if (act === "placement") return placement(whose, micros, text);
    const target = earlier.findLast(({ posted }) => posted.ok);
    if (target === undefined || !target.posted.ok) return null;
    const legs = target.posting.legs.map(({ side, micros: moved }) => ({ side, micros: -moved }));
    return { kind: "reversal", key: text, legs, reverses: target.posted.transactionId };
  }
});
