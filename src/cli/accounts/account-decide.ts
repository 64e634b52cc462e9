import type { Command } from "commander";
import {
  type Account,
  type AccountDecision,
  endGrant,
  findAccount,
  listHeldPlans,
  restoreAccount,
  suspendAccount,
} from "../../callers/account-store.ts";
import { listKeys } from "../../callers/key-store.ts";
import type { Queryable, Sql, Transaction } from "../../db/client.ts";
import { UsageError } from "../../errors.ts";
import { usd } from "../../money.ts";
import { walletMicros } from "../../ledger/store.ts";
import { listPurchases, type Purchase } from "../../purchases/history-store.ts";
import { readUsage } from "../../usage/store.ts";
import { keyJson } from "./key.ts";
import { examples, knownAddress, someText } from "../arguments.ts";
import { decisionCommand, type Given } from "../decision.ts";
import { paint, print, printJson, printTable, shortTime, snakeKeys } from "../output.ts";
import { withDatabase } from "../session.ts";

const PURCHASES_SHOWN = 20;

/** `roundhouse account show | suspend | restore | end-plan`: one account and decisions on it. */
export function addAccountDecisions(command: Command): void {
  command
    .command("show")
    .description("show an account: plan, balance, newest purchases, usage and keys, without their secrets")
    .argument("<email>", "its address, or its id", emailOrId)
    .option("--json", "print a JSON object", false)
    .addHelpText("after", examples("account show ann@example.com", "account show 12 --json"))
    .action((which: string, { json }: { json: boolean }) => withDatabase(({ sql }) => show(sql, which, json)));
  addDecision(
    command
      .command("suspend")
      .description("refuse all keys of an account with account_suspended (403), from the next call on")
      .requiredOption("--reason <text>", "the reason, shown to the account's holder", someText)
      .addHelpText("after", examples('account suspend ann@example.com --reason "keys were shared in public"')),
    "account.suspend",
    suspendAccount,
  );
  addDecision(
    command
      .command("restore")
      .description("restore a suspended account: its keys work again from the next call on")
      .addHelpText("after", examples('account restore ann@example.com --reason "the keys were replaced"')),
    "account.restore",
    restoreAccount,
  );
  addDecision(
    command
      .command("end-plan")
      .description(
        "end the plan that an account was given without an end, from the next call on, so that it can buy one",
      )
      .addHelpText("after", examples('account end-plan ann@example.com --reason "the trial is over"')),
    "account.end-plan",
    endGrant,
  );
}

function addDecision(
  command: Command,
  action: string,
  work: (tx: Transaction, id: bigint, author: { by: string; reason: string }) => Promise<AccountDecision>,
): void {
  decisionCommand(command.argument("<email>", "its address, or its id", emailOrId), {
    action,
    async decide(tx, { subject, by, reason }: Given<string>) {
      const { id } = await required(tx, subject);
      const done = await work(tx, id, { by, reason });
      return done.ok ? { ...done, id } : done;
    },
    json: ({ id, email, after }) => ({ id, email, ...after }),
  });
}

/** Parses an e-mail address or an id. */
function emailOrId(text: string): string {
  return /^\d{1,18}$/.test(text) ? text : knownAddress(text);
}

async function required(sql: Queryable, which: string): Promise<Account> {
  const found = await findAccount(sql, /^\d{1,18}$/.test(which) ? { id: BigInt(which) } : { email: which });
  if (found === null) throw new UsageError(`there is no account ${which}; \`roundhouse account list\` names them`);
  return found;
}

async function show(sql: Sql, which: string, json: boolean): Promise<void> {
  const account = await required(sql, which);
  const [plans, keys, usage, balance, purchases] = await Promise.all([
    listHeldPlans(sql, account.id),
    listKeys(sql, account.email),
    readUsage(sql, account.id, 7),
    walletMicros(sql, account.id),
    listPurchases(sql, account.id, { page: 1, perPage: PURCHASES_SHOWN }),
  ]);
  if (json) {
    return printJson({
      ...snakeKeys(account),
      plans: plans.map(snakeKeys),
      keys: keys.map(keyJson),
      usage: snakeKeys(usage),
      balance: usd(balance),
      purchases: purchases.rows.map(plain),
    });
  }
  const state = account.suspendedAt === null ? paint.green("active") : paint.red("suspended");
  await print(`account ${account.id}: ${account.email}, ${state}, since ${shortTime(account.createdAt)}`);
  if (account.suspendedAt !== null) {
    const by = account.suspendedBy === null ? "" : ` by ${account.suspendedBy}`;
    await print(`suspended at ${shortTime(account.suspendedAt)}${by}: ${account.suspendReason}`);
  }
  const end = account.planEndsAt === null ? "without end" : `until ${shortTime(account.planEndsAt)}`;
  await print(account.plan === null ? "no plan" : `plan ${account.plan}, ${end}`);
  await print(`balance ${usd(balance)} USD, ${purchases.total} purchases`);
  await print(`calls: ${usage.dayUsed} today, ${usage.monthUsed} this month`);
  await printTable(
    ["key", "", "name", "state", "made at", "last used at", "expires at"],
    keys.map((key) => [
      key.id,
      `…${key.last4}`,
      key.name,
      key.state,
      shortTime(key.createdAt),
      shortTime(key.lastUsedAt),
      shortTime(key.expiresAt),
    ]),
  );
  if (purchases.rows.length === 0) return;
  await printTable(
    ["purchase", "", "plan", "made at", "from", "until", "USD"],
    purchases.rows.map((one) => [
      one.id,
      one.kind,
      one.plan,
      shortTime(one.madeAt),
      shortTime(one.startsAt),
      shortTime(one.endsAt),
      usd(one.paidMicros) + (one.reversedAt === null ? "" : " (reversed)"),
    ]),
  );
}

/** A purchase with amounts in USD. */
function plain(made: Purchase) {
  const { id, kind, plan, madeAt, startsAt, endsAt, reversedAt, listedMicros, discountMicros, paidMicros } = made;
  const amounts = { listed: usd(listedMicros), discount: usd(discountMicros), paid: usd(paidMicros) };
  return { ...snakeKeys({ id, kind, plan, madeAt, startsAt, endsAt, reversedAt }), ...amounts };
}
