import { connect, type Sql } from "../../src/db/client.ts";
import { post, type Posted, type Posting } from "../../src/ledger/store.ts";
import { createDatabase } from "../support/database.ts";
import { withoutDocuments } from "../support/fund.ts";

/** A database with a ledger, and what tests say to it. */
export interface LedgerWorld {
  sql: Sql;
  url: string;
  /** A new account; gives its id. */
  account(): Promise<bigint>;
  /** A posting in a transaction of its own. */
  book(posting: Posting): Promise<Posted>;
  /** The id of a transaction that must be there. */
  booked(posting: Posting): Promise<bigint>;
  close(): Promise<void>;
}

export async function openLedgerWorld(): Promise<LedgerWorld> {
  const database = await createDatabase();
  const sql = connect(database.url, { name: "test ledger", max: 8 });
  const guardAgain = await withoutDocuments(sql);
  let made = 0;
  const book = (posting: Posting) => sql.begin((tx) => post(tx, posting));
  return {
    sql,
    url: database.url,
    async account() {
      made += 1;
      const [row] = await sql<{ id: bigint }[]>`
        insert into accounts (email) values (${`caller-${made}@example.com`}) returning id`;
      return row?.id ?? 0n;
    },
    book,
    async booked(posting) {
      const posted = await book(posting);
      if (!posted.ok) throw new Error(posted.message);
      return posted.transactionId;
    },
    async close() {
      await guardAgain();
      await sql.end();
      await database.drop();
    },
  };
}

/** Money that comes in for an account. */
export function topup(owner: bigint, micros: bigint, key: string): Posting {
  const legs = [
    { side: { kind: "cash_bank" } as const, micros: -micros },
    { side: { kind: "wallet", owner } as const, micros },
  ];
  return { kind: "topup", key, legs };
}

/** Money that an account spends. */
export function purchase(owner: bigint, micros: bigint, key: string, plan = "Pro"): Posting {
  const legs = [
    { side: { kind: "wallet", owner } as const, micros: -micros },
    { side: { kind: "revenue" } as const, micros },
  ];
  return { kind: "purchase", key, legs, meta: { plan } };
}

/** Money that comes in and is nobody's yet. */
export function suspense(micros: bigint, key: string): Posting {
  const legs = [
    { side: { kind: "cash_bank" } as const, micros: -micros },
    { side: { kind: "suspense" } as const, micros },
  ];
  return { kind: "suspense", key, legs };
}

/** Such money, given to whom it is of. */
export function placement(owner: bigint, micros: bigint, key: string): Posting {
  const legs = [
    { side: { kind: "suspense" } as const, micros: -micros },
    { side: { kind: "wallet", owner } as const, micros },
  ];
  return { kind: "placement", key, legs };
}
