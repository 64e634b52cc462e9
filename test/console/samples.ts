import { randomUUID } from "node:crypto";
import { XPUB } from "../support/chain.ts";
import type { CookieClient } from "../support/cookie-client.ts";
import type { ConsoleWorld, Holding } from "./world.ts";

/** Makes an object of a holder and returns the id that names it in a path, a form or a query. */
export type Sample = (world: ConsoleWorld, holder: CookieClient & Holding) => Promise<string>;

let made = 0;

const key: Sample = async (world, { accountId, email }) => {
  made += 1;
  return String((await world.giveKey(accountId, `sample ${made} of ${email}`)).id);
};

/** The order form of a plan as it is shown, both of its boxes ticked. */
async function orderForm(holder: CookieClient): Promise<Record<string, string>> {
  const text = await (await holder.get("/console/plans/Pro/buy")).text();
  return Object.fromEntries(
    [...text.matchAll(/name="(key|offer|start_now|is_final)" value="([^"]*)"/g)].map(([, name, value]) => [
      name!,
      value!,
    ]),
  );
}

async function buy(holder: CookieClient): Promise<{ form: Record<string, string>; purchase: string }> {
  const form = await orderForm(holder);
  const done = await holder.post("/console/plans/Pro/buy", form);
  const purchase = /^\/console\/purchases\/(\d+)$/.exec(done.headers.get("location") ?? "")?.[1];
  if (purchase === undefined) throw new Error(`buying a plan returned ${done.status}: ${await done.text()}`);
  return { form, purchase };
}

const transfer: Sample = async (_, holder) => {
  const done = await holder.post("/console/top-up/bank", { amount: "100.00", currency: "USD" });
  const id = /^\/console\/top-up\/bank\/(\d+)$/.exec(done.headers.get("location") ?? "")?.[1];
  if (id === undefined) throw new Error(`announcing a transfer returned ${done.status}: ${await done.text()}`);
  return id;
};

/** Variables with which every way to pay in is there. */
export const EVERY_METHOD: Readonly<Record<string, string>> = {
  BANK_BENEFICIARY: "Roundhouse Test",
  BANK_IBAN: "DE89370400440532013000",
  BINANCE_PAY_KEY: "a merchant of a test",
  BINANCE_PAY_SECRET: "a secret of a merchant of a test",
  USDT_XPUB: XPUB,
  USDT_RPC_URLS: "http://127.0.0.1:9", // it gets no request: no worker runs
};

/**
 * Values for the paths of pages and actions: `PATH PARAMETER`. A page with a parameter that is not listed fails the
 * test, since it would be unknown whether it shows another account's data.
 */
export const PATH_SAMPLES: Readonly<Record<string, Sample>> = {
  "/keys/:key/rotate key": key,
  "/keys/:key/revoke key": key,
  "/top-up/bank/:topup topup": transfer,
  "/top-up/bank/:topup/cancel topup": transfer,
  "/top-up/binance-pay/:id id": async (_, holder) => {
    const done = await holder.post("/console/top-up/binance-pay", { amount: "25.00" });
    const id = /^\/console\/top-up\/binance-pay\/(\d+)$/.exec(done.headers.get("location") ?? "")?.[1];
    if (id === undefined) throw new Error(`beginning an order returned ${done.status}: ${await done.text()}`);
    return id;
  },
  "/purchases/:purchase purchase": async (_, holder) => (await buy(holder)).purchase,
};

/** Parameters of paths that name what all may see: `PATH PARAMETER`, with one that there is. */
export const SHARED: Readonly<Record<string, string>> = {
  "/plans/:plan/buy plan": "Pro",
};

/** Fields of forms that name something of a holder's: `ACTION FIELD`; and parameters of pages: `PATH ?PARAMETER`. */
export const FIELD_SAMPLES: Readonly<Record<string, Sample>> = {};

/**
 * Those that are read within the holder's own account alone, so that another's is as good as any: the place from which on
 * a list is shown, the mark by which an order is placed once.
 */
export const OWN_SAMPLES: Readonly<Record<string, Sample>> = {
  "plan.buy key": async (_, holder) => (await buy(holder)).form["key"]!,
  // of another's key nothing is found: only calls of one's own account are looked at
  "/requests ?key": async (world, { accountId }) => String((await world.giveKey(accountId, randomUUID())).id),
  "/statement ?before": async (world, { accountId }) => {
    const [entry] = await world.sql<[{ id: bigint }]>`
      select max(e.transaction_id) as id
      from ledger_entries e
      join ledger_accounts a on a.id = e.account_id
      where a.owner_id = ${accountId}`;
    return String(entry.id);
  },
};

/** Fields that take any text or number and name no object of an account: `ACTION FIELD` or `PATH ?PARAMETER`. */
export const NO_IDS: ReadonlySet<string> = new Set([
  "key.create name",
  "call.try secret_key",
  "plan.buy offer",
  "topup.bank.announce amount",
  "topup.bank.announce currency",
  "topup.binance-pay amount",
  "topup.demo amount",
  "plan.buy start_now",
  "plan.buy is_final",
  "/usage ?days",
  "/requests ?endpoint",
  "/usage/usage.csv ?days",
  "/purchases ?page",
]);

/** What else a form needs, so that it is the id alone that is wrong. */
export const FORMS: Readonly<Record<string, (holder: CookieClient) => Promise<Record<string, string>>>> = {
  "key.rotate": () => Promise.resolve({ overlap: "1h" }),
  "plan.buy": orderForm,
};

/**
 * Routes that are neither a page nor an action, and identify people by an address, a password or a link. Their responses
 * are tested in sign-in.test.ts and sign-up.test.ts.
 */
export const SIGN_IN_ROUTES: ReadonlySet<string> = new Set([
  ...["sign-up", "sign-up/resend", "confirm", "sign-in", "sign-in/code", "forgot", "reset", "new-email"].flatMap(
    (path) => [`GET /console/${path}`, `POST /console/${path}`],
  ),
  "GET /console/terms",
  "POST /console/sign-out",
]);

/**
 * Routes that are neither, and concern the current account, each with a sample of another account's id that its form could
 * name; all are also tried with the parameters of every route. A route that is not listed anywhere fails the test.
 */
export const OWN_ROUTES: Readonly<Record<string, Sample | null>> = {
  "POST /console/terms": null,
  "GET /console/step-up": null,
  "POST /console/step-up": null,
  "GET /console/security": null,
  "POST /console/security/sessions/end": async ({ sql }, { userId }) => {
    const [session] = await sql<[{ id: string }]>`select id from auth.sessions where user_id = ${userId} limit 1`;
    return session.id;
  },
  "POST /console/security/sessions/end-others": null,
  "POST /console/security/password": null,
  "POST /console/security/two-factor/enable": null,
  "POST /console/security/two-factor/verify": null,
  "POST /console/security/two-factor/codes": null,
  "POST /console/security/two-factor/disable": null,
  "POST /console/security/email": null,
  "POST /console/account/close": null,
};
