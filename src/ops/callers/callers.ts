import { z } from "zod";
import { findHolderSummary } from "../../accounts/holders/holder-summary-store.ts";
import { findAccount, listAccounts, listHeldPlans } from "../../callers/account-store.ts";
import { listPlanSettings } from "../../callers/plan-store.ts";
import { listKeys } from "../../callers/key-store.ts";
import { walletMicros } from "../../ledger/store.ts";
import { listEndpointDays } from "../../usage/daily-store.ts";
import { readUsage } from "../../usage/store.ts";
import { opsPage } from "../contract.ts";
import { callsFigure } from "../../frame/figure.ts";
import { idOf } from "../../frame/path-id.ts";
import { PER_PAGE } from "../payloads/listing.ts";

const querySchema = z.object({
  q: z.string().trim().max(254).default(""),
  state: z.enum(["", "suspended", "active"]).default(""),
  sort: z.enum(["email", "-email", "created", "-created", "used", "-used"]).default("email"),
  page: z.coerce.number().int().min(1).max(100_000).default(1),
});

/** Accounts by address, id or the last four of a key. A whole key is not looked up, since it would be in the URL. */
export const callersPage = opsPage({
  path: "/callers",
  nav: { label: "Callers", order: 35, group: "Money" },
  query: querySchema,
  async show({ sql }, { query }) {
    const { state, sort } = query;
    const isKey = query.q.startsWith("rh_live_");
    const q = isKey ? query.q.slice(-4) : query.q;
    const { rows, total, page } = await listAccounts(
      sql,
      {
        text: q,
        isSuspended: state === "" ? null : state === "suspended",
        sort: sort.replace(/^-/, "") as "email" | "created" | "used",
        isDown: sort.startsWith("-"),
      },
      { page: query.page, perPage: PER_PAGE },
    );
    const data = { rows, total, query: { ...query, q, page }, isKey, perPage: PER_PAGE };
    return { template: "callers/callers", title: "Callers", data };
  },
});

const days = z.object({ days: z.coerce.number().int().min(1).max(92).default(31) });

/** One account: its plan, what it calls, its keys without their secret. */
export const callerPage = opsPage({
  path: "/callers/:id",
  query: days,
  async show({ sql, log }, { params, query }) {
    const id = idOf(params["id"]);
    const account = id === null ? null : await findAccount(sql, { id });
    if (id === null || account === null) return null;
    const [plans, settings, keys, usage, endpointDays, holder, balance] = await Promise.all([
      listHeldPlans(sql, id),
      listPlanSettings(sql),
      listKeys(sql, account.email),
      readUsage(sql, id, query.days),
      listEndpointDays(sql, id, query.days),
      findHolderSummary(sql, id),
      walletMicros(sql, id),
    ]);
    const data = {
      account,
      holder,
      balance,
      plans,
      plan: settings.find(({ name }) => name === account.plan) ?? null,
      keys,
      usage,
      endpointDays,
      figure: await callsFigure(log, `Calls of ${account.email} by day`, usage.days),
      days: query.days,
    };
    const crumbs = [{ label: "Callers", href: "/ops/callers" }];
    return { template: "callers/caller", title: account.email, data, crumbs };
  },
});
