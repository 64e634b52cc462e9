/**
 * The rights of each part of the program on each table.
 *
 * Facts are only added, and only by workers; the API reads them. Operators may add the results of their decisions (rounds
 * of a response that is read again, scores that a revision voids, a promotion), but change or delete none. Workers cannot
 * read what allows a person to sign in or to call.
 */

/** A part of the program, by the role it takes; `read` is for people who ask the database themselves. */
export type Part = "api" | "console" | "ops" | "worker" | "read";

/** The roles, by part. They belong to the whole server: all our databases on it share them. */
export const ROLES: Record<Part, string> = {
  api: "roundhouse_api",
  console: "roundhouse_console",
  ops: "roundhouse_ops",
  worker: "roundhouse_worker",
  read: "roundhouse_read",
};

/**
 * By part: r = select, a = insert, w = update, d = delete; with columns in brackets, those alone. Locking a row of a
 * table needs `w` on one of its columns.
 */
type Grants = Partial<Record<Part, string>>;

const ALL_READ: Grants = { api: "r", console: "r", ops: "r", worker: "r", read: "r" };
const FACTS: Grants = { ...ALL_READ, worker: "ra" };

/** Every table and view there is; a test fails where one is missing here. */
export const GRANTS: Record<string, Grants> = {
  // houses and how they are polled
  houses: { ...ALL_READ, ops: "rw", worker: "raw" },
  tables: { ...ALL_READ, ops: "r w(revision_hash)", worker: "raw" },
  feeds: { ops: "r", worker: "raw", read: "r" },
  poll_leases: { api: "r", ops: "rw", worker: "raw", read: "r" },
  request_budgets: { ops: "r", worker: "raw", read: "r" },
  circuit_changes: { ops: "rad", worker: "rad", read: "r" },
  payloads: {
    api: "r(table_id,received_at,requested_at,state,error)",
    // a re-read gives tables that share a response their own rows
    ops: "ra w(state,read_at,refused_reason,error,items,new_rounds,quarantined,reread_at)",
    worker: "raw",
    read: "r",
  },
  payloads_kept: {
    ops: "r w(state,read_at,refused_reason,items,new_rounds,quarantined,reread_at)",
    worker: "rad",
    read: "r",
  },
  polls: { api: "r", ops: "r", worker: "raw", read: "r" },
  uptime_days: { api: "r", ops: "r", worker: "rawd", read: "r" },
  uptime_minutes: { api: "ra", ops: "r", worker: "rad", read: "r" },
  poll_failures: { ops: "r", worker: "ra", read: "r" },

  // rounds and what is known of them
  rounds: { ...FACTS, ops: "ra" },
  round_revision: { ...ALL_READ, ops: "ra w(scores_voided_at)", worker: "r w(scores_voided_at)" },
  number_resets: { ...ALL_READ, ops: "ra" },
  disputed_rounds: ALL_READ,
  round_cells: { api: "r", ops: "r", worker: "rawd", read: "r" },
  gaps: { ...ALL_READ, ops: "raw", worker: "raw" },
  quarantine: { api: "r", ops: "raw", worker: "rawd", read: "r" },
  conflicts: { ...ALL_READ, ops: "raw", worker: "raw" },
  notices: { ...ALL_READ, ops: "raw", worker: "rawd" },

  // the core: heads, forecasts and their accuracy
  palettes: FACTS,
  models: { ...FACTS, ops: "ra" },
  table_heads: { ...ALL_READ, ops: "rw", worker: "raw" },
  named_rounds: ALL_READ,
  forecast_sets: FACTS,
  // a payload that staff read again, and a round they revise, settle open forecasts
  score_sets: { ...FACTS, ops: "ra" },
  score_revisions: { ...FACTS, ops: "ra" },
  model_snapshots: { ...ALL_READ, ops: "raw", worker: "raw" },
  published_readings: { ...ALL_READ, worker: "raw" },
  accuracy_models: FACTS,
  accuracy_days: { ...ALL_READ, worker: "rawd" },
  accuracy_periods: { ...ALL_READ, worker: "rawd" },
  forecasts: ALL_READ,
  open_forecasts: ALL_READ,
  scores: ALL_READ,
  logs: { ...ALL_READ, worker: "raw" },
  log_entries: FACTS,
  log_heads: { ...ALL_READ, worker: "raw" },
  log_tiles: { ...ALL_READ, worker: "raw" },
  log_checkpoints: { ...ALL_READ, worker: "raw" },
  accuracy_hours: { ...ALL_READ, worker: "rawd" },
  accuracy_marks: { ...ALL_READ, worker: "raw" },
  model_parameters: { ops: "ra", worker: "ra", read: "r" },
  calibrations: { ...ALL_READ, ops: "ra", worker: "rad" },
  calibration_runs: { api: "r", ops: "raw", worker: "rawd", read: "r" },
  calibration_comparisons: { api: "r", ops: "raw", worker: "raw", read: "r" },
  backtest_checkpoints: { ops: "r", worker: "rawd", read: "r" },
  house_audits: { ...ALL_READ, worker: "rawd" },

  // running it
  workers: { api: "r", ops: "r", worker: "rawd", read: "r" },
  heartbeats: { api: "r", ops: "r", worker: "raw", read: "r" },
  leases: { api: "r", ops: "r", worker: "raw", read: "r" },
  queue_controls: { api: "r", ops: "rawd", worker: "rawd", read: "r" },
  alerts: { api: "r(kind,closed_at)", ops: "raw", worker: "rawd", read: "r" },
  snoozes: { ops: "rawd" },
  alert_mails: { worker: "rad" },
  staff_webhook_failure: { worker: "rawd" },
  backups: { api: "r", ops: "r", read: "r" },
  restores: { console: "r", read: "r" },
  migrations: ALL_READ,
  audit_log: { console: "ra", ops: "ra", worker: "ra" },
  audit_head: { console: "r w(seq,hash)", ops: "r w(seq,hash)", worker: "r w(seq,hash)" },

  // callers
  accounts: {
    api: "r(id,verified_at,suspended_at,closed_at)",
    console: "r a(email,verified_at,user_id) w(email,verified_at,user_id,closed_at,quota_mails)",
    ops: "r w(suspended_at,suspended_by,suspend_reason)",
    worker: "r",
  },
  keys: {
    api: "r w(last_used_at)",
    console: "r a(account_id,name,sha256,last4,expires_at) w(expires_at,revoked_at,replaced_by)",
    ops: "r w(revoked_at)",
    worker: "r(id,account_id,name,last4,created_at,expires_at,revoked_at,last_used_at,replaced_by)",
  },
  plans: { api: "r", console: "r w(revision)", ops: "rw", worker: "r" },
  plan_houses: { api: "r", console: "r", ops: "rad", worker: "r" },
  entitlements: {
    api: "r",
    console: "r a(account_id,plan,starts_at,ends_at,purchase_id) w(ends_at,reminded_at,end_notified_at) d",
    ops: "r w(ends_at,end_notified_at)",
    worker: "r w(reminded_at,end_notified_at)",
  },
  quotas: { api: "r", console: "r", ops: "r", worker: "rd" },
  usage_facts: { api: "r", console: "r", ops: "r", worker: "r" },
  usage_facts_default: { worker: "r" },
  call_minutes: { api: "raw", console: "r", ops: "r" },
  usage_counts: { api: "r", console: "r", ops: "r", worker: "rd" },
  usage_days: { ops: "r", worker: "rawd", read: "r" },
  usage_sums: { ops: "r", worker: "rawd", read: "r" },
  purchases: { console: "ra", ops: "r", worker: "r" },
  purchase_credits: { console: "ra", ops: "r", worker: "r" },

  // money
  // a transaction also needs what sql/0028_documents.sql grants
  ledger_accounts: {
    console: "r a(kind,owner_id) w(balance)",
    ops: "r a(kind,owner_id) w(balance)",
    worker: "r a(kind,owner_id) w(balance)",
  },
  ledger_transactions: { console: "ra", ops: "ra", worker: "ra" },
  ledger_entries: { console: "ra", ops: "ra", worker: "ra" },
  reversal_proposals: { ops: "raw" },
  topups: {
    // it credits demo money alone: any other credit needs a document that it cannot write
    console:
      "r a(account_id,method,reference,state,amount_micros,expires_at,details) w(state,reason,amount_micros,credited_at,transaction_id)",
    ops: "raw",
    worker: "raw",
  },
  bank_imports: { ops: "raw" },
  bank_lines: {
    // a holder's file has their own transfers
    console: "r(id,bank,bank_ref,value_date,currency,amount_minor,sender,remittance)",
    ops: "raw",
    // alerts name a line by its bank, reference and amount, and no payer
    worker:
      "r(id,bank,bank_ref,currency,amount_minor,state,suspense_micros,suspense_transaction_id,credit_transaction_id,return_transaction_id)",
  },
  bank_matches: {
    console: "r(id,line_id,topup_id,approved_by,ended_at)",
    ops: "raw",
    worker: "r(line_id,matched_at,approved_at,ended_at)",
  },
  bank_returns: { ops: "raw", worker: "r(line_id,asked_at,approved_at,ended_at)" },
  deposit_addresses: { console: "ra", ops: "r", worker: "r" },
  chain_endpoints: { api: "r", console: "r", ops: "r w(settled_to)", worker: "raw" },
  chain_deposits: { api: "r(chain_id,state,seen_at)", console: "r", ops: "r", worker: "raw" },
  chain_left_out: { ops: "r", worker: "raw" },
  credited_deposits: { console: "r", ops: "r", worker: "rawd" },
  payment_app_orders: {
    console: "r a(topup_id,trade_no,amount_micros,ask_at) w(ask_at,refund_reported_at)",
    ops: "r w(ask_at)",
    worker: "raw",
  },
  payment_app_nonces: { console: "rad", worker: "rd" },
  payment_app_unknown_orders: { console: "a(prepay_id)", worker: "rd" },
  payment_app_certificates: { console: "r", ops: "r", worker: "rawd" },
  payment_app_state: { console: "r w(certificates_wanted_at)", ops: "r", worker: "rw" },

  // people, and what they prove who they are with
  "auth.users": {
    console:
      "r a(id,name,email,email_verified,surface) w(name,email,email_verified,two_factor_enabled,revocations,updated_at) d",
    ops: "r a(id,name,email,email_verified,surface) w(two_factor_enabled,revocations,updated_at)",
  },
  "auth.accounts": { console: "rawd", ops: "raw" },
  "auth.sessions": { console: "rawd", ops: "rawd", worker: "r(expires_at) d" },
  "auth.verifications": { console: "rawd", ops: "rawd", worker: "r(expires_at) d" },
  "auth.two_factors": { console: "rawd", ops: "rawd" },
  "auth.used_codes": { console: "rad", ops: "rad" },
  operators: { ops: "r a(user_id,role,created_by) w(role,disabled_at)" },
  operator_changes: { ops: "ra" },
  sign_in_links: { ops: "r w(used_at) d" },
  sign_ups: { console: "rad", worker: "r(expires_at) d" },
  mail_tokens: { console: "r a(sha256,purpose,user_id,email,expires_at) w(used_at) d", worker: "r(expires_at) d" },
  legal_texts: { api: "r", console: "ra", ops: "r" },
  consents: { console: "ra w(address,user_agent)", ops: "r" },
  mails: {
    api: "r(id,created_at,next_try_at,sent_at,given_up_at)",
    console:
      "r(kind,recipient,subject,dedup_key,created_at,sent_at,id) a(kind,recipient,subject,body,sealed,dedup_key)",
    ops: "r a(kind,recipient,subject,body,dedup_key) w(given_up_at,is_refused,attempts,asked_at,next_try_at)",
    worker: "rawd",
  },
  mail_failures: { console: "r", ops: "r", worker: "rawd" },
};

/** Functions that run with the rights of the owner of the schema, by signature, and the parts that may call them. */
export const FUNCTION_GRANTS: Record<string, readonly Part[]> = {
  "changes_by_staff(bigint, bigint, integer)": ["console"],
  "consume_calls(bigint[], text[], integer[], timestamp with time zone)": ["api"],
  "consume_runs(bigint[], text[], integer[], timestamp with time zone)": ["api"],
  "count_console_sessions(text)": ["ops"],
  "count_usage()": [],
  "drop_day(text, date)": ["worker"],
  "end_console_sessions(text)": ["ops"],
  "entitlement_end(bigint)": ["console", "ops"],
  "is_admin(text)": ["ops"],
  "make_day_partitions(date, integer)": ["worker"],
  "refuse_second_credit()": [],
  "refuse_undocumented()": [],
  "sessions()": ["api", "ops", "worker"],
  "take_off_second_factor(text)": ["ops"],
};

/** Columns with which a reader could sign in, call, or impersonate a person; workers have no access. */
export const SECRETS: readonly (readonly [table: string, column: string])[] = [
  ["auth.accounts", "password"],
  ["auth.accounts", "access_token"],
  ["auth.accounts", "refresh_token"],
  ["auth.accounts", "id_token"],
  ["auth.sessions", "id"],
  ["auth.sessions", "token"],
  ["auth.two_factors", "secret"],
  ["auth.two_factors", "backup_codes"],
  ["auth.verifications", "value"],
  ["auth.verifications", "identifier"],
  ["auth.used_codes", "code"],
  ["sign_ups", "password_hash"],
  ["sign_ups", "sha256"],
  ["sign_ups", "browser_sha256"],
  ["mail_tokens", "sha256"],
  ["sign_in_links", "sha256"],
  ["keys", "sha256"],
];

/** A table's, sequence's or function's name with its schema. */
export function withSchema(name: string): string {
  return name.includes(".") ? name : `public.${name}`;
}
