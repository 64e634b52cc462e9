import { randomUUID } from "node:crypto";
import { legalText } from "../../src/accounts/legal.ts";
import { createAccount } from "../../src/callers/account-store.ts";
import { checkLedger } from "../../src/ledger/check.ts";
import { walletMicros } from "../../src/ledger/store.ts";
import type { Order } from "../../src/purchases/check-order.ts";
import { isOffer, offerOf } from "../../src/purchases/offer.ts";
import { purchase } from "../../src/purchases/purchase-store.ts";
import { quoteOf } from "../../src/purchases/quote.ts";
import { readBuyer } from "../../src/purchases/state-store.ts";
import { InvariantViolation } from "../simulate/invariant-violation.ts";
import { restoreBackup } from "../simulate/restore-backup.ts";
import { fund } from "../support/fund.ts";
import { TARGET_SECONDS, type FaultCase } from "./case.ts";
import type { Testbed } from "./testbed.ts";

const LOST_FOR_MS = 15_000;
const FUNDS_MICROS = 500_000_000n;
const PLAN = "Pro";

/** The database is lost and restored from an older backup. */
export const BACKUP_CASES: readonly FaultCase[] = [
  {
    name: "a restored backup",
    targetSeconds: TARGET_SECONDS.workerKilled,
    from: "end",
    async run(testbed) {
      const { sql, api, workers, caller } = testbed;
      const accountId = await makeBuyer(testbed);
      const order = await orderOf(testbed, accountId);
      const processes = [api, ...workers];
      const fromMs = await restoreBackup(
        { ...testbed, processes, callers: [caller], commandContext: testbed.commandContext },
        {
          lostForMs: LOST_FOR_MS,
          isRedisLost: true,
          meanwhile: () => buy(testbed, order),
        },
      );
      // the buyer sends the form of the lost purchase again, twice
      const again = await orderOf(testbed, accountId, order.key);
      await Promise.all([buy(testbed, again), buy(testbed, again)]);
      const [row] = await sql<{ n: number; paid: bigint }[]>`
        select count(*)::integer as n, coalesce(sum(listed_micros - discount_micros), 0)::bigint as paid
        from purchases
        where account_id = ${accountId}`;
      const left = await walletMicros(sql, accountId);
      if (row?.n !== 1 || left !== FUNDS_MICROS - row.paid) {
        throw new InvariantViolation(
          `expected the repeated purchase to be charged once, found ${row?.n ?? 0} times; the balance is ${left}`,
        );
      }
      const ledger = await checkLedger(sql);
      if (!ledger.ok) throw new InvariantViolation(`the ledger: ${JSON.stringify(ledger.differences)}`);
      return { fromMs, observed: "the log was refused until it was declared; the purchase is charged once" };
    },
  },
];

async function makeBuyer({ sql }: Testbed): Promise<bigint> {
  const account = await createAccount(sql, `buyer-${randomUUID()}@example.com`);
  if (!account.ok) throw new Error(account.problem);
  await sql.begin((tx) => fund(tx, account.id, FUNDS_MICROS));
  return account.id;
}

/** The order that the form on the site would send now. */
async function orderOf({ sql }: Testbed, accountId: bigint, key: string = randomUUID()): Promise<Order> {
  const buyer = await readBuyer(sql, accountId);
  const plan = buyer?.plans.find(({ name }) => name === PLAN);
  if (buyer === null || plan === undefined)
    throw new InvariantViolation(
      `expected the account ${accountId} and the plan ${PLAN}, found ${buyer === null ? "no account" : "no such plan"}`,
    );
  const offer = offerOf(plan, buyer.held, { now: buyer.now });
  if (!isOffer(offer)) throw new Error(offer.message);
  return {
    accountId,
    key,
    quote: quoteOf(offer, buyer.now),
    agreed: { startNow: legalText("start-now").version, noWithdrawal: legalText("no-withdrawal").version },
    address: "198.51.100.7",
    userAgent: "a browser",
    requestId: key,
  };
}

async function buy({ sql }: Testbed, order: Order): Promise<void> {
  const done = await purchase(sql, order);
  if (!done.ok) throw new InvariantViolation(`a purchase was refused: ${done.message}`);
}
