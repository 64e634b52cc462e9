import { hostname } from "node:os";
import { resolve } from "node:path";
import { createAccount, createKey, listKeys, revokeKey } from "../../callers/store.ts";
import type { Sql } from "../../db/client.ts";

const DEMO_ACCOUNT = "demo@localhost";
const DEMO_PLAN = "Pro"; // seeded plans include all houses

/** A key for one run, and how to revoke it. */
export interface DemoKey {
  key: string;
  revoke: () => Promise<void>;
}

/**
 * Creates the key that a start prints. Keys of earlier starts on the same data folder are revoked, so that a printed key
 * is valid exactly as long as its run.
 */
export async function mintDemoKey(sql: Sql, dataDir: string): Promise<DemoKey> {
  const account = await createAccount(sql, DEMO_ACCOUNT);
  if (!account.ok) throw new Error(account.reason);
  const name = `start on ${hostname()}:${resolve(dataDir)}`;
  const keys = await listKeys(sql, DEMO_ACCOUNT);
  for (const earlier of keys) if (earlier.name === name && earlier.state === "active") await revoke(sql, earlier.id);
  // an operator may have changed the demo account's plan
  const plan = keys.at(-1)?.plan ?? DEMO_PLAN;
  const made = await createKey(sql, { email: DEMO_ACCOUNT, plan, name });
  if (!made.ok) throw new Error(`no demo key can be made: ${made.reason}`);
  return { key: made.key, revoke: () => revoke(sql, made.id) };
}

async function revoke(sql: Sql, id: bigint): Promise<void> {
  // so many digits can only be an id, never the last four characters of another key
  const outcome = await revokeKey(sql, String(id).padStart(18, "0"));
  if (!outcome.ok) throw new Error(outcome.reason);
}
