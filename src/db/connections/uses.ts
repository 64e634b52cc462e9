/**
 * What a pool is for. Each use has its own deadlines, so that one use cannot delay another.
 *
 * The server ends a statement after `statementMs`, and the client destroys the connection 1.5 s later, because a
 * connection that went silent brings no error. `transactionMs` bounds a transaction from BEGIN to COMMIT, `idleMs` the time
 * in it without a statement (server side: it frees the locks of a client that vanished), `waitMs` the wait for a connection.
 */
export const USES = {
  /** Polls, rounds, forecasts, scores, the worker's own heartbeat: polling must resume within 20 s of any fault. */
  work: { statementMs: 8_000, transactionMs: 30_000, idleMs: 8_000, waitMs: 20_000 },
  /** Passes: a transaction that takes longer than its forecasts may take would be refused. */
  pass: { statementMs: 5_000, transactionMs: 5_000, idleMs: 5_000, waitMs: 5_000 },
  /** Counting calls and finding callers: one look-up or a small batch, and a caller waits for a second at most. */
  meter: { statementMs: 3_000, transactionMs: 6_000, idleMs: 3_000, waitMs: 3_000 },
  /** Reads of the API and of pages: a person does not wait for a page longer than ten seconds. */
  request: { statementMs: 10_000, transactionMs: 20_000, idleMs: 10_000, waitMs: 10_000 },
  /** Jobs that sum, replay and clean up, and commands. */
  long: { statementMs: 60_000, transactionMs: 1_800_000, idleMs: 60_000, waitMs: 60_000 },
  /** Filling a table from a large file is one statement. */
  bulk: { statementMs: 21_600_000, transactionMs: 43_200_000, idleMs: 60_000, waitMs: 60_000 },
} as const;

/** What a pool is for; see {@link USES}. */
export type Use = keyof typeof USES;

/**
 * Each statement is planned once per connection, with index scans and nested loops. PostgreSQL would otherwise plan look-ups
 * in a table of sixteen partitions again for each value, which takes longer than the look-up (a fifth of its work at
 * 20 rounds/s in 300 tables), and a plan made while a table is new would read all of it later. No bitmap scans: they revisit
 * dead rows, while index scans mark them dead (one met 8,000 forecasts to find 250). Who joins whole tables on such a
 * connection turns these off in its transaction, as the ledger's check does.
 */
export const STEADY = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_bitmapscan: "off",
  random_page_cost: "1.1",
};
