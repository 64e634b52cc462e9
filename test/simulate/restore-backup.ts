import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../../src/db/client.ts";
import { InvariantViolation } from "./invariant-violation.ts";
import type { Caller } from "./callers.ts";
import { command, type CommandContext } from "./run-command.ts";
import type { ManagedProcess } from "./processes.ts";
import type { SimulatedServers } from "./servers.ts";
import type { Truth } from "./truth.ts";
import { until } from "./wait-until.ts";

/** What is restored, and what it is restored under. */
export interface RestoreTarget {
  servers: SimulatedServers;
  truth: Truth;
  /** Every process. */
  processes: readonly ManagedProcess[];
  callers: readonly Caller[];
  place: CommandContext;
}

/** What is done besides. */
interface RestoreOptions {
  /** How long everything goes on after the backup, at least: until a checkpoint was signed that the backup lacks. */
  lostForMs: number;
  /** Whether Redis is lost as well. */
  isRedisLost: boolean;
  /** What happens after the backup, and is lost. */
  meanwhile?: () => Promise<void>;
  /** Begins once everything is stopped and the backup is in place, before a process is started. */
  restored?: () => Promise<void>;
}

const SIGNED_WITHIN_MS = 60_000;
const REFUSED_WITHIN_MS = 60_000;
let backups = 0;

/**
 * Loses the database and restores it from a backup as docs/self-hosting.md describes, with real commands: the public log must
 * not be signed until another one is declared, and then it must be. Returns when processes were started again, in epoch
 * milliseconds.
 * @throws Broken if the log was signed before, or is not signed after the declaration
 */
export async function restoreBackup(testbed: RestoreTarget, options: RestoreOptions): Promise<number> {
  const { servers, truth, processes, callers, place } = testbed;
  const { sql } = servers;
  await signed(sql, 0n);
  const file = join(place.folder, `backup-${(backups += 1)}.sql.gz`);
  await command(place, ["backup", "--to", file, "--json"]);
  const atBackup = await signedSize(sql);
  truth.restoredToMs = Date.now();
  await options.meanwhile?.();
  await delay(options.lostForMs);
  await signed(sql, atBackup);
  const starts = await Promise.all(processes.map((managed) => managed.down()));
  await command(place, ["restore", "--from", file, "--into", `fresh_${backups}`, "--json"]);
  await servers.replaceDatabase(`fresh_${backups}`);
  if (options.isRedisLost) await servers.flushRedis();
  await countAgain(sql, callers);
  await options.restored?.();
  const startedMs = Date.now();
  for (const start of starts) start();
  await until("the restored log was not refused", REFUSED_WITHIN_MS, () => isRefused(sql));
  if ((await signedSize(sql)) > atBackup) throw new InvariantViolation("the log of a restored backup was signed");
  await command(place, ["log", "declare", "--reason", "restored from a backup"]);
  await until("the declared log was not signed", SIGNED_WITHIN_MS, async () => {
    return (await signedSize(sql)) > 0n && !(await isRefused(sql));
  });
  return startedMs;
}

/** Waits until a checkpoint beyond a size was signed. */
function signed(sql: Sql, size: bigint): Promise<void> {
  return until("no checkpoint was signed", SIGNED_WITHIN_MS, async () => (await signedSize(sql)) > size);
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

/** What callers were answered since the backup is counted nowhere any more: they begin with what is. */
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
