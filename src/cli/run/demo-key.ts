import { createAccount } from "../../callers/account-store.ts";
import { createKey, listKeys, revokeKey } from "../../callers/key-store.ts";
import { DEMO_ACCOUNT } from "../../config/mail.ts";
import type { Sql } from "../../db/client.ts";

const DEMO_PLAN = "Pro"; // seeded plans include all houses
const DEMO_KEY = "roundhouse up";

/** A key for one run, and how to revoke it. */
export interface DemoKey {
  key: string;
  revoke: () => Promise<void>;
}

/**
 * Creates the key that a start prints. Keys of earlier starts on the same database are revoked, so that those of runs
 * that were killed neither stay valid nor add up.
 */
export async function mintDemoKey(sql: Sql): Promise<DemoKey> {
  const account = await createAccount(sql, DEMO_ACCOUNT);
  if (!account.ok) throw new Error(account.problem);
  const keys = await listKeys(sql, DEMO_ACCOUNT);
  for (const earlier of keys)
    if (earlier.name === DEMO_KEY && earlier.state === "active") await revoke(sql, earlier.id);
  // an operator may have changed the demo account's plan
  const plan = keys.at(-1)?.plan ?? DEMO_PLAN;
  const made = await createKey(sql, { email: DEMO_ACCOUNT, plan, name: DEMO_KEY });
  if (!made.ok) throw new Error(`no demo key can be made: ${made.problem}`);
  return { key: made.key, revoke: () => revoke(sql, made.id) };
}

async function revoke(sql: Sql, id: bigint): Promise<void> {
  const outcome = await revokeKey(sql, id);
  if (!outcome.ok) throw new Error(outcome.problem);
}
