import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../../src/db/client.ts";
import { InvariantViolation } from "./invariant-violation.ts";
import type { Caller } from "./callers.ts";
import { runCommand, type CommandContext } from "./run-command.ts";
import type { ManagedProcess } from "./processes.ts";
import type { SimulatedServers } from "./servers.ts";
import type { Truth } from "./truth.ts";
import { waitUntil } from "./wait-until.ts";

/** Where a backup is made and restored. */
export interface RestoreTarget {
  servers: SimulatedServers;
  truth: Truth;
  /** Every process. */
  processes: readonly ManagedProcess[];
  callers: readonly Caller[];
  commandContext: CommandContext;
}

/** How much is lost, and what happens in the meantime. */
interface RestoreOptions {
  /** The minimum time from the backup to the loss; it also lasts until a checkpoint is signed that the backup lacks. */
  lostForMs: number;
  /** Whether Redis is emptied too. */
  isRedisLost: boolean;
  /** Runs after the backup; its effects are lost. */
  meanwhile?: () => Promise<void>;
  /** Runs when the backup is restored and before processes start. */
  restored?: () => Promise<void>;
}

const SIGNED_WITHIN_MS = 60_000;
const REFUSED_WITHIN_MS = 60_000;
let backups = 0;

/**
 * Replaces the database by a restored backup as docs/self-hosting.md describes, with real commands. The public log must not
 * be signed until a new one is declared, and must be signed after that. Returns when the processes were started again, in
 * epoch milliseconds.
 * @throws InvariantViolation if the log is signed before the declaration, or not signed after it
 */
export async function restoreBackup(testbed: RestoreTarget, options: RestoreOptions): Promise<number> {
  const { servers, truth, processes, callers, commandContext } = testbed;
  const { sql } = servers;
  await signed(sql, 0n);
  const file = join(commandContext.folder, `backup-${(backups += 1)}.sql.gz`);
  await runCommand(commandContext, ["backup", "--to", file, "--json"]);
  const atBackup = await signedSize(sql);
  truth.restoredToMs = Date.now();
  await options.meanwhile?.();
  await delay(options.lostForMs);
  await signed(sql, atBackup);
  const starts = await Promise.all(processes.map((managed) => managed.down()));
  await runCommand(commandContext, ["restore", "--from", file, "--into", `fresh_${backups}`, "--json"]);
  await servers.replaceDatabase(`fresh_${backups}`);
  if (options.isRedisLost) await servers.flushRedis();
  await countAgain(sql, callers);
  await options.restored?.();
  const startedMs = Date.now();
  for (const start of starts) start();
  await waitUntil("no alert for the restored log was raised", REFUSED_WITHIN_MS, () => isRefused(sql));
  if ((await signedSize(sql)) > atBackup) throw new InvariantViolation("the log of a restored backup was signed");
  await runCommand(commandContext, ["log", "declare", "--reason", "restored from a backup"]);
  await waitUntil("the declared log was not signed", SIGNED_WITHIN_MS, async () => {
    return (await signedSize(sql)) > 0n && !(await isRefused(sql));
  });
  return startedMs;
}

/** Waits until a checkpoint of a log larger than `size` is signed. */
function signed(sql: Sql, size: bigint): Promise<void> {
  return waitUntil("no checkpoint was signed", SIGNED_WITHIN_MS, async () => (await signedSize(sql)) > size);
}

/** The size of the newest checkpoint of the newest log; 0 without one. */
async function signedSize(sql: Sql): Promise<bigint> {
  const [row] = await sql<{ size: bigint }[]>`
    select coalesce(max(c.size), 0)::bigint as size
    from log_checkpoints c
    where c.log_id = (select max(id) from logs)`;
  return row?.size ?? 0n;
}

async function isRefused(sql: Sql): Promise<boolean> {
  const rows = await sql`
    select
    from alerts
    where kind = 'log'
      and closed_at is null
      and text like '%declare a new log%'`;
  return rows.length > 0;
}

/** Sets the callers' counts to the restored quotas, which lack the calls since the backup. */
async function countAgain(sql: Sql, callers: readonly Caller[]): Promise<void> {
  for (const caller of callers) {
    const [row] = await sql<{ used: number }[]>`
      select coalesce(sum(q.used), 0)::float8 as used
      from quotas q
      join accounts a on a.id = q.account_id
      where a.email = ${caller.email}
        and length(q.period) = 7`;
    caller.served = row?.used ?? 0;
    caller.cutOff = 0;
    caller.refused.delete("temporarily_unavailable");
  }
}
