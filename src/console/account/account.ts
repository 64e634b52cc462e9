import { z } from "zod";
import { listConsents } from "../../accounts/holders/consent-store.ts";
import { inPages, readOwnData, ROWS_AT_ONCE } from "../../accounts/holders/data-store.ts";
import { findPerson } from "../../accounts/holders/person-store.ts";
import { holderEntry } from "../../accounts/holders/holder-entry.ts";
import { appendAudit } from "../../audit/store.ts";
import { findAccount, listHeldPlans, saveQuotaMails } from "../../callers/account-store.ts";
import { listStatement } from "../../ledger/statement-store.ts";
import { walletMicros } from "../../ledger/store.ts";
import { listPurchases } from "../../purchases/history-store.ts";
import { countPendingTopups, listPendingTopups, listTopups } from "../../topups/topup-store.ts";
import { sumUncredited } from "../../topups/usdt/deposit-list-store.ts";
import { listEndpointDays } from "../../usage/daily-store.ts";
import type { Read } from "../../db/reads.ts";
import { jsonParts } from "../../json-parts.ts";
import { consoleAction, consolePage, type Holder } from "../contract.ts";
import { pendingMoney } from "./pending-money.ts";

/** Purchases and top-ups in the file: above what any account has. One with more has `is_whole: false`. */
const MOST = 50_000;
/** Pending top-ups that the page names one by one before an account is closed. */
const MOST_PENDING = 100;
/** Longer than daily usage is kept. */
const DAYS = 3_660;
const LABELS: Readonly<Record<string, string>> = {
  terms: "Terms",
  adult: "18 or older",
  "start-now": "Plan begins immediately",
  "no-withdrawal": "Right of withdrawal ends",
};

export const accountPage = consolePage({
  path: "/account",
  nav: { label: "Account", order: 40, group: "Settings" },
  async show({ sql }, { holder: { accountId, userId, email } }) {
    const [account, agreed, balance, plans, person, topups, count, deposits] = await Promise.all([
      findAccount(sql, { id: accountId }),
      listConsents(sql, accountId),
      walletMicros(sql, accountId),
      listHeldPlans(sql, accountId),
      findPerson(sql, { userId }),
      listPendingTopups(sql, accountId, MOST_PENDING),
      countPendingTopups(sql, accountId),
      sumUncredited(sql, accountId),
    ]);
    if (account === null) return null;
    const data = {
      account,
      email,
      agreed: agreed.map((one) => ({ ...one, label: LABELS[one.kind] ?? one.kind })),
      balance,
      hasBalance: balance > 0n,
      pending: pendingMoney(topups, count, deposits),
      plans: plans.filter(({ state }) => state !== "past"),
      hasTwoFactor: person?.hasTwoFactor === true,
    };
    return { template: "account/account", title: "Account", data };
  },
});

export const accountDataFile = consolePage({
  path: "/account/data.json",
  show: (_, { holder }) =>
    Promise.resolve({
      file: `roundhouse-account-${holder.accountId}.json`,
      type: "application/json",
      parts: (read) => dataParts(read, holder),
    }),
});

async function* dataParts(read: Read, { accountId, userId }: Holder): AsyncGenerator<string> {
  const own = await readOwnData(read, { accountId, userId });
  const [days, purchases, topups] = await read((sql) =>
    Promise.all([
      listEndpointDays(sql, accountId, DAYS),
      listPurchases(sql, accountId, { page: 1, perPage: MOST }),
      listTopups(sql, accountId, { limit: MOST }),
    ]),
  );
  yield* jsonParts({
    ...own,
    usage_by_day: days,
    balance_entries: inPages(read, async (sql, before: bigint | null) => {
      const entries = await listStatement(sql, accountId, { before, limit: ROWS_AT_ONCE });
      return entries.map((entry) => ({ ...entry, place: entry.id }));
    }),
    purchases: purchases.rows,
    top_ups: topups,
    is_whole: topups.length < MOST && purchases.total <= MOST,
    changes_order: "newest first",
    amounts: "micro-units: 1000000 is 1 USD",
  });
  yield "\n";
}

const mailsForm = z.object({ quota_mails: z.enum(["yes"]).optional() });

/** The most that one account can turn these mails on or off within a day: each writes an entry of the audit log. */
const CHANGES_OF_MAILS = { points: 20, seconds: 86_400 };

/** Turns the mails about used calls on or off. */
export const mailsAction = consoleAction({
  name: "account.mails",
  path: "/account/mails",
  needs: [],
  form: mailsForm,
  async run({ sql, buckets }, { holder, form: { quota_mails } }) {
    const isOn = quota_mails === "yes";
    const state = isOn ? "on" : "off";
    const location = "/console/account";
    const same = {
      ok: true,
      message: `Mails about used calls were ${state} before.`,
      location,
      didNothing: true,
    } as const;
    const account = await findAccount(sql, { id: holder.accountId });
    if (account?.quotaMails === isOn) return same;
    const { isGranted } = await buckets.draw(`console-mails ${holder.accountId}`, CHANGES_OF_MAILS);
    if (!isGranted) {
      const problem = `The mails were changed ${CHANGES_OF_MAILS.points} times within a day, the most there may be. Try again later.`;
      return { ok: false, problem };
    }
    const isChanged = await sql.begin(async (tx) => {
      const changed = await saveQuotaMails(tx, holder.accountId, isOn); // another request may have done it meanwhile
      if (!changed) return false;
      await appendAudit(tx, holderEntry(holder, { action: "account.mails", after: { quota_mails: isOn } }));
      return true;
    });
    return isChanged ? { ok: true, message: `Mails about used calls are ${state}.`, location } : same;
  },
});
