import type { Queryable } from "../db/client.ts";
import type { PurchaseKind } from "./offer.ts";

/** What was bought. Amounts are micro-units; times as every surface prints them. */
export interface Purchase {
  id: bigint;
  kind: PurchaseKind;
  plan: string;
  /** What the plan cost then. */
  listedMicros: bigint;
  /** What was left of the purchases that it replaced. */
  discountMicros: bigint;
  paidMicros: bigint;
  /** For how many days the plan was sold then. */
  days: number;
  madeAt: string;
  /** The time that was bought. */
  startsAt: string;
  endsAt: string;
  /** The upgrade that took its place; null where its time runs or ran to its end. */
  replacedBy: bigint | null;
  /** The purchases that it took the place of. */
  replaces: bigint[];
  /** The two texts that its buyer agreed to, as they read then. */
  startNow: AgreedText;
  noWithdrawal: AgreedText;
  transactionId: bigint | null;
}

/** A text that somebody agreed to. */
export interface AgreedText {
  version: string;
  text: string;
}

/** What an account has bought, newest first, and how many purchases there are. */
export async function listPurchases(
  sql: Queryable,
  accountId: bigint,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ rows: Purchase[]; total: number }> {
  const rows = await sql<(Purchase & { total: number })[]>`
    select ${columnsOf(sql)}, count(*) over ()::integer as total
    from purchases p
    where p.account_id = ${accountId}
    order by p.id desc
    limit ${limit}
    offset ${offset}`;
  const shown = rows.map((found) => {
    const { total: _, ...row } = found;
    return row;
  });
  return { rows: shown, total: rows[0]?.total ?? 0 };
}

/** One purchase of an account; null where it has none with this id, also where another account has. */
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
    utc_text(p.made_at) as "madeAt",
    utc_text(p.starts_at) as "startsAt",
    utc_text(p.ends_at) as "endsAt",
    (select purchase_id from purchase_credits where of_purchase = p.id) as "replacedBy",
    array(select of_purchase from purchase_credits where purchase_id = p.id order by 1) as replaces,
    ${agreedText(sql, "start-now")} as "startNow",
    ${agreedText(sql, "no-withdrawal")} as "noWithdrawal",
    p.transaction_id as "transactionId"`;
}

function agreedText(sql: Queryable, kind: "start-now" | "no-withdrawal") {
  return sql`(
      select json_build_object('version', version, 'text', body)
      from legal_texts
      where kind = ${kind}::text
        and version = ${kind === "start-now" ? sql`p.start_now_version` : sql`p.no_withdrawal_version`}
    )`;
}
