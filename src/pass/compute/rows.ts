/*
 * What a pass reads and writes, as plain values. Times are texts in UTC with seven digits (`2026-11-21T04:00:12.1234560Z`),
 * hashes lower-case hex, numbers of rounds and forecasts bigint.
 */
import {
  arrayOf,
  bigint,
  bigintAsNumber,
  boolean,
  columnsOf,
  hash,
  hex,
  integer,
  json,
  optional,
  plain,
  smallint,
  text,
  time,
  type RowOf,
} from "../columns.ts";

/** Columns of a head that follow from its table's records. */
const FROM_RECORDS = {
  lastSeq: bigint,
  lastOrdinal: bigint,
  newestSeq: optional(bigint),
  newestRoundId: optional(text),
  historyHash: hash,
  forecastSeq: bigint,
  forecastHash: hash,
  scoreHash: hash,
  firstForecastAt: optional(time),
  firstForecastOrdinal: optional(bigint),
  openSets: arrayOf<bigint>("bigint"),
  setSeq: optional(bigint),
  nowPpm: arrayOf<number | null>("integer"),
  /** A forecast has ended and is not settled: settling was paused. */
  hasEnded: boolean,
};
/** Columns of a head that follow from its last responses. */
const FROM_RESPONSES = {
  newestNumber: optional(bigint),
  newestOccurredAt: optional(time),
  sameHundredths: optional(bigintAsNumber),
  sameCount: integer,
  proofNumber: optional(bigint),
  proofHash: optional(hex),
  proofOf: optional(text),
  respondedAt: optional(time),
  payloadSha256: optional(hex),
  /** Of its part of the shared response that it read last, see `sharedPart`; null if it must read the next one. */
  partSha256: optional(hex),
  payloadPath: optional(text),
  lastRoundAt: optional(time),
  lastPolledRoundAt: optional(time),
};
const HEAD = { palette: smallint, model: text, pauseMs: integer, ...FROM_RECORDS, ...FROM_RESPONSES };
/** A row of `table_heads`; its columns are explained in sql/0003_heads.sql. */
export type HeadRow = RowOf<typeof HEAD>;
export const HEADS = columnsOf(HEAD);
/** What a pass changes: palette, model and pause are written by changes of a table's settings. */
export const MOVED_HEADS = columnsOf({ ...FROM_RECORDS, ...FROM_RESPONSES });

const REBUILT = { palette: smallint, model: text, ...FROM_RECORDS };
/** What a repair changes. */
export type RebuiltHeadRow = RowOf<typeof REBUILT>;
export const REBUILT_HEADS = columnsOf(REBUILT);

const MARK = {
  receivedAt: time,
  state: plain<"unread" | "read" | "refused">("text"),
  refusedReason: optional(text),
  items: optional(integer),
  newRounds: optional(integer),
  quarantined: optional(integer),
};
/** The result of reading a payload that was stored before. */
export type PayloadMark = RowOf<typeof MARK>;
export const PAYLOAD_MARKS = columnsOf(MARK);

const PAYLOAD = {
  ...MARK,
  kind: plain<"poll" | "history">("text"),
  requestedAt: time,
  previousRequestedAt: optional(time),
  path: text,
  status: integer,
  contentType: optional(text),
  bytes: integer,
  sha256: hash,
  error: optional(text),
};
/** A response as stored. */
export interface PayloadRow extends RowOf<typeof PAYLOAD> {
  /** gzip. One array in several rows of a transaction is stored once. */
  body: Uint8Array;
  /** Other tables that share the response and for which it listed what they had read before. */
  served?: readonly number[];
}
export const PAYLOADS = columnsOf(PAYLOAD);

const PACKED_PAYLOAD = {
  ...PAYLOAD,
  served: arrayOf<number>("integer"),
  bodyEnd: integer,
  bodyLength: integer,
  /** The table whose payload has the body; null if it has its own. */
  bodyOf: optional(integer),
};
/** A payload whose body is part of one byte string. */
export type PackedPayloadRow = RowOf<typeof PACKED_PAYLOAD>;
export const PACKED_PAYLOADS = columnsOf(PACKED_PAYLOAD);

/**
 * How a round was received, by its number in `rounds.source`: polled, requested or read again afterwards, computed from a
 * later hash, or imported.
 */
export const SOURCES = ["poll", "history", "computed", "import"] as const;

const REPLAYED = {
  seq: bigint,
  /** Null when it is late. */
  ordinal: optional(bigint),
  roundId: text,
  hundredths: bigintAsNumber,
  requestedAt: optional(time),
  receivedAt: time,
  afterGap: boolean,
  late: boolean,
  verified: optional(boolean),
};
/** What a replay needs of a round. */
export type ReplayedRow = RowOf<typeof REPLAYED>;
export const REPLAYED_ROUNDS = columnsOf(REPLAYED);

const ROUND = {
  ...REPLAYED,
  rawValue: text,
  palette: smallint,
  /** Index in the palette. */
  color: smallint,
  /** Index in {@link SOURCES}. */
  source: smallint,
  occurredAt: optional(time),
  absentAt: optional(time),
  proofHash: optional(hex),
  historyHash: hash,
};
/** A round with its place. */
export type RoundRow = RowOf<typeof ROUND>;
export const ROUNDS = columnsOf(ROUND);

const QUARANTINED = {
  payloadReceivedAt: optional(time),
  code: plain<string>("text"),
  reason: text,
  roundId: optional(text),
  item: text,
  itemSha256: plain<string>("text"),
};
/** An item that was not stored as a round; `item` is its JSON, at most 16,384 characters. */
export type QuarantineRow = RowOf<typeof QUARANTINED>;
export const QUARANTINE = columnsOf(QUARANTINED);

/** A round with another result than the one that was kept. */
export interface ConflictRow {
  payloadReceivedAt: string | null;
  roundId: string;
  keptHundredths: number;
  otherHundredths: number;
  otherRaw: string;
}

const GAP = {
  fromNumber: optional(bigint),
  toNumber: optional(bigint),
  /** How many of the range are missing; 0 opens it as filled. */
  missing: optional(bigint),
  afterRoundId: text,
  beforeRoundId: text,
};
/** Rounds known to exist and not received; without numbers the size is unknown. */
export type GapRow = RowOf<typeof GAP>;
export const GAPS = columnsOf(GAP);

const FORECAST_SET = {
  cutoffSeq: bigint,
  cutoffOrdinal: bigint,
  model: text,
  firstSeq: bigint,
  issuedAt: time,
  pauseMs: integer,
  absentAt: time,
  cutoffRoundId: text,
  historyHash: hash,
  targetRoundId: optional(text),
  features: arrayOf<number>("smallint"),
  horizons: arrayOf<number>("smallint"),
  pPpm: arrayOf<number>("integer"),
  basePpm: arrayOf<number>("integer"),
  referencePpm: arrayOf<number | null>("integer"),
  ends: arrayOf<bigint>("bigint"),
  prevHash: hash,
  /** One after the other, 64 digits each. */
  hashes: hex,
};
/** Everything forecast after one round. */
export type ForecastSetRow = RowOf<typeof FORECAST_SET>;
export const FORECAST_SETS = columnsOf(FORECAST_SET);

const SCORE_SET = {
  settledSeq: bigint,
  settledOrdinal: optional(bigint),
  targetRequestedAt: optional(time),
  scoredAt: time,
  forecastSeqs: arrayOf<bigint>("bigint"),
  cutoffSeqs: arrayOf<bigint>("bigint"),
  features: arrayOf<number>("smallint"),
  statuses: arrayOf<number>("smallint"),
  reasons: arrayOf<number>("smallint"),
  outcomes: arrayOf<number | null>("smallint"),
  prevHash: hash,
  /** One after the other, 64 digits each. */
  hashes: hex,
};
/** Everything settled by one round. */
export type ScoreSetRow = RowOf<typeof SCORE_SET>;
export const SCORE_SETS = columnsOf(SCORE_SET);

const SNAPSHOT = {
  model: text,
  ordinal: bigint,
  seq: bigint,
  stateHash: hex,
  reading: text,
  readingHash: hex,
  refs: json,
};
/** A snapshot from which a state can be replayed. */
export interface SnapshotRow extends RowOf<typeof SNAPSHOT> {
  state: Uint8Array;
}
export const SNAPSHOTS = columnsOf(SNAPSHOT);
/** Their states are sent as one byte string. */
export const PACKED_SNAPSHOTS = columnsOf({ ...SNAPSHOT, stateEnd: integer, stateLength: integer });

const READING = { seq: bigint, reading: json };
/** A reading to publish. */
export type ReadingRow = RowOf<typeof READING>;
export const READINGS = columnsOf(READING);

/** Everything that a pass writes for one table. */
export interface PassRows {
  tableId: number;
  /** Version of the head that the pass began with; the written head has the next one. */
  version: bigint;
  head: HeadRow;
  payloads: readonly PayloadRow[];
  rounds: readonly RoundRow[];
  quarantine: readonly QuarantineRow[];
  conflicts: readonly ConflictRow[];
  gaps: readonly GapRow[];
  /** Numbers of late rounds, which may fill gaps. */
  lateNumbers: readonly bigint[];
  /** Gaps of unknown size that one response closes. */
  shownGaps: readonly { beforeRoundId: string; found: number }[];
  forecastSet: ForecastSetRow | null;
  scoreSets: readonly ScoreSetRow[];
  snapshot: SnapshotRow | null;
  reading: ReadingRow | null;
}
