import type { Queryable } from "../db/client.ts";
import { type ListPage, type PageWanted, readListPage } from "../db/list-page.ts";
import type { PurchaseKind } from "./offer.ts";

/** A purchase. Amounts are micro-units; times are in the format of all JSON. */
export interface Purchase {
  id: bigint;
  kind: PurchaseKind;
  plan: string;
  /** The price of the plan at that time. */
  listedMicros: bigint;
  /** The remaining value of the replaced purchases. */
  discountMicros: bigint;
  paidMicros: bigint;
  /** The duration of the plan at that time, in days. */
  days: number;
  /** What the plan included at that time; null is no limit. */
  dayLimit: bigint | null;
  monthLimit: bigint | null;
  perSecond: number;
  burst: number;
  /** Names of its houses; null for all. */
  houses: string[] | null;
  madeAt: string;
  /** The purchased period. */
  startsAt: string;
  endsAt: string;
  /** The upgrade that replaced it; null if it was not replaced. */
  replacedBy: bigint | null;
  /** The purchases that it replaced. */
  replaces: bigint[];
  /** The two accepted texts, as they read then. */
  startNow: AgreedText;
  noWithdrawal: AgreedText;
  transactionId: bigint | null;
  /** When its payment was reversed; null if it was not, or if that reversal was reversed. */
  reversedAt: string | null;
}

/** An accepted text. */
export interface AgreedText {
  version: string;
  text: string;
}

/** Returns a page of the purchases of an account, newest first; the last page if there are fewer. */
export async function listPurchases(
  sql: Queryable,
  accountId: bigint,
  wanted: PageWanted,
): Promise<ListPage<Purchase>> {
  return readListPage<Purchase>(
    wanted,
    ({ limit, offset }) => sql<(Purchase & { total: number })[]>`
    select ${columnsOf(sql)}, count(*) over ()::integer as total
    from purchases p
    where p.account_id = ${accountId}
    order by p.id desc
    limit ${limit}
    offset ${offset}`,
  );
}

/** Returns a purchase of an account; null if this account has none with that id. */
export async function findPurchase(sql: Queryable, accountId: bigint, id: bigint): Promise<Purchase | null> {
  const [row] = await sql<Purchase[]>`
    select ${columnsOf(sql)}
    from purchases p
    where p.account_id = ${accountId}
      and p.id = ${id}`;
  return row ?? null;
}

function columnsOf(sql: Queryable) {
  return sql`
    p.id,
    p.kind,
    p.plan,
    p.listed_micros as "listedMicros",
    p.discount_micros as "discountMicros",
    p.paid_micros as "paidMicros",
    p.days,
    p.day_limit as "dayLimit",
    p.month_limit as "monthLimit",
    p.burst_per_second as "perSecond",
    p.burst,
    case
      when p.houses is not null then array(select name from houses where id = any(p.houses) order by lower(name))
    end as houses,
    utc_text(p.made_at) as "madeAt",
    utc_text(p.starts_at) as "startsAt",
    utc_text(p.ends_at) as "endsAt",
    (select purchase_id from purchase_credits where of_purchase = p.id) as "replacedBy",
    array(select of_purchase from purchase_credits where purchase_id = p.id order by 1) as replaces,
    ${agreedText(sql, "start-now")} as "startNow",
    ${agreedText(sql, "no-withdrawal")} as "noWithdrawal",
    p.transaction_id as "transactionId",
    utc_text(reversed_at(p.transaction_id)) as "reversedAt"`;
}

function agreedText(sql: Queryable, kind: "start-now" | "no-withdrawal") {
  return sql`(
      select json_build_object('version', version, 'text', body)
      from legal_texts
      where kind = ${kind}::text
        and version = ${kind === "start-now" ? sql`p.start_now_version` : sql`p.no_withdrawal_version`}
    )`;
}
