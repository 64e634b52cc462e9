/**
 * Entries of the transparency log: statements about the newest link of each chain of hashes, as RFC 8785 JSON. A chain's
 * newest hash covers everything before it, so a statement fixes a table's rounds, forecasts and scores up to a point.
 */
import canonicalize from "canonicalize";

/** The newest links of a table's chains. Numbers are decimal strings; hashes are those of the exports. */
export interface TableStatement {
  kind: "table";
  /** `house/game/market`. */
  table: string;
  /** The newest stored round, and the hash of the history up to it. */
  round_seq: string;
  history_hash: string;
  /** How many rounds up to it were on time. A public export ends at most 400 of them earlier, the longest window. */
  on_time_rounds: string;
  forecast_seq: string;
  forecast_hash: string;
  /** The newest score or revision of a score; 64 zeros before the first. */
  score_hash: string;
  /** The newest decision of staff on a round. */
  revision_hash: string;
  /** The newest calibration and its record's hash; empty before the first. */
  calibration: string;
  calibration_hash: string;
}

/** The newest entry of the audit log. */
export interface AuditStatement {
  kind: "audit";
  seq: string;
  hash: string;
}

/**
 * The published accuracy of a table: sums of everything issued until `cutoff_seq` and settled until the other two. If many
 * rows changed there are several of them, each with other rows.
 */
export interface AccuracyStatement {
  kind: "accuracy";
  table: string;
  /** The newest forecast set, score set and revision of scores that are counted; 0 if there is none. */
  cutoff_seq: string;
  settled_seq: string;
  revision: string;
  /** The hash of that revision in the chain of scores, which exports have; 64 zeros if there is none. */
  score_revision_hash: string;
  /**
   * By model and feature: forecasts issued, scored, hits, voids, and Σ log loss in micro-nats. A row that has not changed
   * since the log stated it is not repeated.
   */
  rows: {
    model: string;
    feature: string;
    forecasts: string;
    scored: string;
    hits: string;
    voids: string;
    log_loss: string;
  }[];
}

/** The witnesses whose cosignatures are asked for: after statements of accuracy, if any are configured. */
export interface WitnessStatement {
  kind: "witnesses";
  /** Their verifier keys, as `roundhouse witness` prints them. */
  keys: string[];
}

/** The first entry of a log, and the checkpoint of the log before it. */
export interface LogStatement {
  kind: "log";
  origin: string;
  /** The last signed checkpoint of the log before; empty for the first log. */
  previous: string;
  /** Why another log was declared; empty for the first. */
  reason: string;
}

export type Statement = TableStatement | AuditStatement | AccuracyStatement | WitnessStatement | LogStatement;

/**
 * A statement as an entry.
 *
 * @throws Error if a text is not well-formed
 */
export function entryOf(statement: Statement): string {
  const text = canonicalize(statement);
  if (text === undefined || !text.isWellFormed())
    throw new Error(`expected well-formed text in a ${statement.kind} entry`);
  return text;
}
