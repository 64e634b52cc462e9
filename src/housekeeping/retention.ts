import { ENDED_KEPT_DAYS } from "../mail/limits.ts";
import {
  CALIBRATIONS_KEPT,
  CALL_MINUTES_KEPT_DAYS,
  DIFFERENCES_KEPT_DAYS,
  OPEN_QUARANTINE_PER_TABLE,
  POLLS_KEPT_DAYS,
  RUNS_KEPT_DAYS,
  SETTLED_KEPT_DAYS,
  UPTIME_KEPT_DAYS,
  UPTIME_MINUTES_KEPT_DAYS,
  USAGE_DAYS_KEPT_DAYS,
  USAGE_FACTS_KEPT_DAYS,
} from "./limits.ts";

/**
 * How long rows of a table are kept.
 *
 * - `forever`: facts that may have to be proved, money, and decisions of staff. They are never deleted.
 * - `bounded`: their number has a limit: one per house, table or process.
 * - `pruned`: they are deleted; `by` names the code that deletes them: `housekeep` does so in small batches every hour.
 */
export type Retention =
  | { kept: "forever"; why: string }
  | { kept: "bounded"; by: string }
  | { kept: "pruned"; after: string; by: "housekeep" | "its writer" };

const forever = (why: string): Retention => ({ kept: "forever", why });
const bounded = (by: string): Retention => ({ kept: "bounded", by });
const pruned = (after: string, by: "housekeep" | "its writer" = "housekeep"): Retention => ({
  kept: "pruned",
  after,
  by,
});

const FACT = "a fact: verify and anyone's own scoring start from it";
const MONEY = "money";
const DECISION = "decisions of staff, few";

/** Every table; a test fails if one is missing here. */
export const RETENTION: Readonly<Record<string, Retention>> = {
  houses: bounded("one a house; one that left the file is disabled"),
  tables: bounded("one a table"),
  feeds: bounded("one a table"),
  poll_leases: bounded("one a house and shard"),
  request_budgets: bounded("one a house"),
  circuit_changes: pruned("30 days", "its writer"),
  payloads: pruned("PAYLOAD_RETENTION_HOURS after their day, by whole days, once every payload of the day was read"),
  payloads_kept: pruned("2,000 payloads or 64 MiB of a house, the oldest first, but none that an open alert names"),
  polls: pruned(`${POLLS_KEPT_DAYS} days, by whole days`),
  uptime_days: pruned(`${UPTIME_KEPT_DAYS} days`),
  uptime_minutes: pruned(`${UPTIME_MINUTES_KEPT_DAYS} days`),
  poll_failures: pruned(`${POLLS_KEPT_DAYS} days, by whole days`),

  rounds: forever(FACT),
  round_revision: forever(DECISION),
  number_resets: forever(DECISION),
  round_cells: pruned("8 days; made from rounds", "its writer"),
  gaps: forever("what was missing, which accuracy and audits rest on"),
  quarantine: pruned(
    `${SETTLED_KEPT_DAYS} days after it was decided and last seen; of open items the newest ${OPEN_QUARANTINE_PER_TABLE.toLocaleString("en")} of a table`,
  ),
  conflicts: forever("why a forecast is void"),
  notices: pruned(`${SETTLED_KEPT_DAYS} days after it closed`),

  palettes: bounded("one for each list of bands that a table has or had"),
  models: bounded("one for each list of bands, edge and constants that a table has or had"),
  table_heads: bounded("one a table"),
  forecast_sets: forever(FACT),
  score_sets: forever(FACT),
  score_revisions: forever(FACT),
  model_snapshots: bounded("one a table and model"),
  published_readings: bounded("one a table"),
  logs: bounded("one, and another for each that an operator declares"),
  log_entries: forever("what others can check us by"),
  log_heads: bounded("one a table and log"),
  log_tiles: forever("the tree over log_entries"),
  log_checkpoints: forever("what was signed, and when witnesses cosigned it"),
  accuracy_models: bounded("one a table and model"),
  accuracy_hours: forever("what every published period is the sum of"),
  accuracy_days: forever("what every published period is the sum of"),
  accuracy_periods: bounded("five a table, model and feature"),
  accuracy_marks: bounded("one a table"),
  model_parameters: forever(DECISION),
  calibrations: pruned(
    `rolling ones are thinned out: the newest ${CALIBRATIONS_KEPT.newest} of a table and model, the last of each day for ${CALIBRATIONS_KEPT.days} days and the first and the last of each month stay, those that differed from the live state for ${DIFFERENCES_KEPT_DAYS} days; manual, promoted and compared ones are kept permanently`,
  ),
  calibration_runs: pruned(
    `rolling ones with their record, ${RUNS_KEPT_DAYS} days after their end where they made none`,
  ),
  calibration_comparisons: forever(DECISION),
  backtest_checkpoints: pruned("its run is done", "its writer"),
  house_audits: forever("evidence on houses, an hour a row; verify makes each again"),

  workers: pruned("a minute of silence", "its writer"),
  heartbeats: bounded("one a kind of single worker"),
  leases: bounded("one for each role that a single process holds"),
  queue_controls: bounded("one a queue"),
  alerts: pruned(`${SETTLED_KEPT_DAYS} days after it closed`),
  snoozes: pruned("30 days after its end", "its writer"),
  alert_mails: pruned(`${ENDED_KEPT_DAYS} days`),
  staff_webhook_failure: bounded("one"),
  migrations: bounded("one a file of sql/"),
  audit_log: forever("who did what, a chain of hashes"),
  operator_changes: forever(DECISION),
  audit_head: bounded("one"),
  backups: forever("one a backup, so that a restored one is recognized"),
  restores: forever("one a restore, so that no lost address is given out again"),

  accounts: forever("whose money and calls these are; one that is closed names no one"),
  keys: forever("whose calls these were; hashes only"),
  plans: bounded("one a plan"),
  plan_houses: bounded("one a plan and house"),
  entitlements: forever("what was bought and held when"),
  quotas: pruned(`${USAGE_DAYS_KEPT_DAYS} days for days; months are kept permanently`),
  usage_facts: pruned(`${USAGE_FACTS_KEPT_DAYS} days, by whole days`),
  call_minutes: pruned(`${CALL_MINUTES_KEPT_DAYS} day after its own, by whole days`),
  usage_counts: pruned(`${USAGE_DAYS_KEPT_DAYS} days`),
  usage_days: pruned("the facts of its day"),
  usage_sums: pruned("its day is closed", "its writer"),
  purchases: forever(MONEY),
  purchase_credits: forever(MONEY),

  ledger_accounts: forever(MONEY),
  ledger_transactions: forever(MONEY),
  ledger_entries: forever(MONEY),
  reversal_proposals: forever(MONEY),
  topups: forever(MONEY),
  bank_imports: forever(MONEY),
  bank_lines: forever(MONEY),
  bank_matches: forever(MONEY),
  bank_returns: forever(MONEY),
  deposit_addresses: forever(MONEY),
  chain_endpoints: bounded("two a chain and token"),
  chain_deposits: forever(MONEY),
  chain_left_out: forever(MONEY),
  credited_deposits: pruned("the block of its deposit is final, or a day", "its writer"),
  payment_app_orders: forever(MONEY),
  payment_app_nonces: pruned("their time is too old to be believed", "its writer"),
  payment_app_unknown_orders: pruned("90 days", "its writer"),
  payment_app_certificates: pruned("the payment app names others", "its writer"),
  payment_app_state: bounded("one"),

  "auth.users": bounded("one a person; gone when the account is closed"),
  "auth.accounts": bounded("one a person"),
  "auth.sessions": pruned("a day after their end"),
  "auth.verifications": pruned("a day after their end"),
  "auth.two_factors": bounded("one a person"),
  "auth.used_codes": pruned("minutes, at the next code", "its writer"),
  operators: bounded("one a person"),
  sign_in_links: pruned("a day after their end, at the next link", "its writer"),
  sign_ups: pruned("their end"),
  mail_tokens: pruned("a day after their end"),
  legal_texts: forever("what someone agreed to, as it read"),
  consents: forever("who agreed to what"),
  mails: pruned(`${ENDED_KEPT_DAYS} days after they were sent or given up, or requested and not sent`),
  mail_failures: bounded("one"),
};
