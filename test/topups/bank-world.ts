import { expect } from "vitest";
import type { Sql } from "../../src/db/client.ts";
import { announceTransfer } from "../../src/topups/bank/expected-store.ts";
import { openOpsWorld, type OpsWorld, type CookieClient } from "../ops/world.ts";

/** Settings with which bank transfers are offered. */
const BANK = {
  BANK_BENEFICIARY: "Roundhouse Ltd",
  BANK_IBAN: "DE89370400440532013000",
  BANK_BIC: "COBADEFFXXX",
  BANK_NAME: "Main",
  BANK_CURRENCIES: ["USD", "EUR"],
};

/** An instance that takes bank transfers, with two operators who have second factors, Ann and Ben. */
export interface BankWorld {
  world: OpsWorld;
  sql: Sql;
  ann: CookieClient;
  ben: CookieClient;
  /** Makes an account; gives its id. */
  account(email: string): Promise<bigint>;
  /** Announces a transfer of an account. */
  announce(accountId: bigint, announced?: string): Promise<{ id: bigint; reference: string }>;
  /** Ann enters a line; gives its path at `/ops`. */
  enter(
    line: Partial<Record<"bank" | "bank_ref" | "amount" | "currency" | "sender" | "remittance" | "value_date", string>>,
  ): Promise<string>;
  /** Ann says whose a line is. */
  match(path: string, to: string, account: bigint, rate?: string): Promise<Response>;
  /** The id of the match that stands. */
  matchId(path: string): Promise<string>;
  /** What a side of the ledger holds, in micro-units: 0 where it never had anything. */
  holds(kind: string, owner?: bigint): Promise<bigint>;
  /** The state of a line. */
  stateOf(path: string): Promise<string>;
}

/** Opens one; its settings may be given. */
export async function openBankWorld(settings: Parameters<typeof openOpsWorld>[0] = {}): Promise<BankWorld> {
  const world = await openOpsWorld({ ...settings, settings: { ...BANK, ...settings.settings } });
  const { sql } = world;
  const person = async (email: string) => {
    const id = await world.makeOperator(email, "operator");
    const { client, response } = await world.signIn(email);
    expect(response.status).toBe(303);
    await sql`update auth.users set two_factor_enabled = true where id = ${id}`;
    return client;
  };
  const [ann, ben] = [await person("ann@example.com"), await person("ben@example.com")];
  let lines = 0;
  const idOf = (path: string) => /\d+$/.exec(path)?.[0] ?? "";
  return {
    world,
    sql,
    ann,
    ben,
    async account(email) {
      const [made] = await sql<{ id: bigint }[]>`
        insert into accounts (email, verified_at) values (${email}, now()) returning id`;
      return made!.id;
    },
    async announce(accountId, announced = "100.00 USD") {
      const made = await sql.begin((tx) => announceTransfer(tx, { accountId, announced }));
      if (!made.ok) throw new Error(made.problem);
      return made;
    },
    async enter(line) {
      lines += 1;
      const fields = {
        bank: "Main",
        bank_ref: `ref-${lines}`,
        value_date: "2026-11-20",
        amount: "100.00",
        currency: "USD",
        sender: "Cleo Caller",
        remittance: "",
        ...line,
      };
      const response = await ann.post("/ops/bank/lines/new", fields);
      const location = response.headers.get("location");
      if (location === null)
        throw new Error(`entering a line was answered ${response.status}: ${await problemOf(response)}`);
      return location;
    },
    match: (path, to, account, rate = "") => ann.post(`${path}/match`, { to, account: String(account), rate }),
    async matchId(path) {
      const [open] = await sql<{ id: string }[]>`
        select id::text from bank_matches where line_id = ${idOf(path)} and ended_at is null`;
      return open?.id ?? "0";
    },
    async holds(kind, owner) {
      const [held] = await sql<{ balance: bigint }[]>`
        select balance from ledger_accounts where kind = ${kind} and owner_id is not distinct from ${owner ?? null}`;
      return held?.balance ?? 0n;
    },
    async stateOf(path) {
      const [line] = await sql<{ state: string }[]>`select state from bank_lines where id = ${idOf(path)}`;
      return line?.state ?? "none";
    },
  };
}

/** What a page says is wrong. */
export async function problemOf(response: Response): Promise<string> {
  const text = await response.text();
  return (/class="problem"[^>]*>([^<]*)</.exec(text)?.[1] ?? text.slice(0, 300)).replaceAll("&#39;", "'");
}
