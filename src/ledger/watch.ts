import { syncAlerts } from "../alerts/store.ts";
import type { Sql } from "../db/client.ts";
import type { Log } from "../log.ts";
import { checkLedger } from "./check.ts";

/** Timeout of one statement over all entries: half of the job's timeout. */
const STATEMENT_MS = 300_000;

/**
 * Checks the whole ledger. Keeps an alert open for each difference, and closes alerts whose cause is gone. Returns the number of differences and entries.
 */
export async function watchLedger(
  sql: Sql,
  log: Log,
  signal: AbortSignal,
): Promise<{ differences: number; entries: number }> {
  const { checked, differences, unlisted } = await checkLedger(sql, { signal, timeoutMs: STATEMENT_MS });
  const alerts = differences.map(({ kind, subject, expected, found }) => ({
    subject: `${kind} ${subject}`,
    text: `the ledger is not as its entries say: ${subject} should be ${expected} and is ${found} (${kind}); stop selling and see \`roundhouse ledger check\``,
  }));
  if (unlisted > 0) {
    const text = `the ledger differs in ${unlisted} more places than are listed; restore it from a backup before anything is sold`;
    alerts.push({ subject: "more", text });
  }
  await syncAlerts(sql, log, "ledger", alerts);
  return { differences: differences.length + unlisted, entries: checked.entries };
}
