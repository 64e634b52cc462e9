/*
 * The state of a table, and the circumstances and results of a pass: all plain immutable values. Times are
 * UTC texts with seven digits (`2026-11-21T04:00:12.1234560Z`), so that they compare as strings.
 */
import type { PublishedReadingJson } from "../../forecasts/readings/reading-state.ts";
import type { References } from "../../forecasts/accuracy/figures/references.ts";
import type { Model } from "../../forecasts/model/model.ts";
import type { AuditRow, NumberReset } from "../../forecasts/readings/house-audit.ts";
import type { ReadingMemory } from "../../forecasts/readings/reading-memory.ts";
import type { Color } from "../../rounds/colors.ts";
import type { FormatState } from "../../rounds/notices/format-watch.ts";
import type { UnknownGap } from "../../rounds/gaps/gaps.ts";
import type { NoticeKind } from "../../rounds/notices/notices.ts";
import type { KnownRound } from "../../rounds/round.ts";
import type { HeldBack } from "../../rounds/intake.ts";
import type { ForecastSetRow, HeadRow, PassRows, PayloadMark, ReplayedRow, SnapshotRow } from "./rows.ts";

/** Rounds of a table that a later response may list again, by seq: those after `lastSeq - KNOWN_ROUNDS` are known. */
export const KNOWN_ROUNDS = 128;

/** A snapshot is written when the newest is this many rounds old, late ones included. */
export const SNAPSHOT_EVERY = 64;

/** A reading is published at most every so many milliseconds, unless a fact became unusual. */
export const READING_EVERY_MS = 10_000;

/** Notices that passes open and close; others follow from rows or are opened by an operator. */
export const PASS_NOTICES: readonly NoticeKind[] = ["format", "stuck", "ids", "stalled"];

/** Rounds with a quarantined item that are remembered (of so many rows, when a state is loaded), and gaps of unknown size. */
export const HELD_ROUNDS = 256;
export const UNKNOWN_GAPS = 1_000;

/** The settings of a table, which change only by an operator's change that also advances the version of its head. */
export interface TableFacts {
  tableId: number;
  /** `house/game/market`. */
  name: string;
  roundIds: "consecutive" | "opaque";
  /** The bands of the head's palette, lowest first. */
  bands: readonly Color[];
  /** The edge that the house declares; null if it declares none. */
  edge: number | null;
  /** In the order in which they were made. */
  resets: readonly NumberReset[];
}

/**
 * The newest {@link KNOWN_ROUNDS} rounds of a table, newest first, as one text: a line per round with its id and its values,
 * with tabs between. As objects in a map they take four times the memory. Ids have no control characters.
 */
export type KnownRounds = string;

/** What one round of its span means for an open forecast. */
export interface SpanRound {
  seq: bigint;
  ordinal: bigint;
  requestedAt: string | null;
}

/** A forecast that is not settled, with the result of its span so far. */
export interface OpenForecast {
  readonly seq: bigint;
  readonly cutoffSeq: bigint;
  readonly cutoffOrdinal: bigint;
  readonly issuedAt: string;
  readonly model: string;
  /** 0 = next_color; 1 + 3·color + target = a window. */
  readonly feature: number;
  /** The on-time round with which it ends. */
  readonly endOrdinal: bigint;
  /** Number of the first round of its span; null if ids are not consecutive. */
  readonly firstNumber: bigint | null;
  /** The bands of its colors. */
  readonly bands: readonly Color[];
  /** For a window: its color occurred. For next_color: the color that occurred; null before. */
  readonly outcome: number | null;
  /** The first gap (1) or late request (2) in its span. */
  readonly fault: { readonly reason: number; readonly seq: bigint } | null;
  /** The first round of its span that has a second result (3) or that an operator revised (5). */
  readonly dispute: { readonly reason: number; readonly seq: bigint } | null;
  /** The round with which it ended, by count or by a fault; set for longer than a pass only while settling is paused. */
  readonly end: SpanRound | null;
}

/** The parts of a published reading that decide when the next one is due. */
export interface PublishedFacts {
  /** Of the newest round in it. */
  seq: bigint;
  madeAt: string;
  /** Names of the facts that were unusual. */
  unusual: readonly string[];
}

/** The input state of a pass on a table; it follows from stored rows, see `replay`. */
export interface PassState {
  readonly table: TableFacts;
  readonly version: bigint;
  readonly head: HeadRow;
  /** `respondedAt` as it is stored: that of a repeated part is stored only now and then. */
  readonly notedAt: string | null;
  readonly known: KnownRounds;
  /** Rounds with a quarantined item, by round id. */
  readonly heldBack: ReadonlyMap<string, HeldBack>;
  /** Older rounds than those in `heldBack` may have a quarantined item too. */
  readonly isHeldCut: boolean;
  /** Gaps of unknown size that are not filled, newest first; none if ids are consecutive. */
  readonly unknownGaps: readonly UnknownGap[];
  /** When the open notices of {@link PASS_NOTICES} were opened, by kind. */
  readonly notices: ReadonlyMap<NoticeKind, string>;
  readonly format: FormatState;
  /** A stored payload is unread: later ones wait for it. */
  readonly hasUnread: boolean;
  readonly model: Model;
  /** K7's memory after the newest on-time round. */
  readonly memory: Float64Array;
  readonly references: References;
  /** The memory of the reading, after `head.lastSeq`. */
  readonly reading: ReadingMemory;
  readonly published: PublishedFacts | null;
  /** The newest snapshot of the head's model; null before the first. */
  readonly snapshot: Pick<SnapshotRow, "seq" | "stateHash"> | null;
  /** By forecast seq. */
  readonly open: readonly OpenForecast[];
  /** `ends` of the newest forecast set if it is of the head's model, else zeros. */
  readonly ends: readonly bigint[];
}

/** Time and circumstances of a pass. */
export interface PassTime {
  /** Database time in whole microseconds: `issued_at` of its set and `scored_at` of its scores. */
  issuedAt: string;
  /** Polled tables of all houses: the more there are, the more evidence one of them must show. */
  tables: number;
  /** False while `score-accuracy` is paused: ended forecasts are settled by a later pass. */
  maySettle: boolean;
  /** False if no set may be issued: the rounds are added, or the database refused a set as late. */
  mayIssue: boolean;
  /**
   * Of several passes in one transaction only the last makes a snapshot and a reading: `more` if another one follows,
   * `last` if rounds of earlier ones are not in a snapshot or a reading yet.
   */
  batch?: "more" | "last";
}

/** A notice that opens or changes; it closes if `text` is null. */
export interface NoticeEvent {
  kind: NoticeKind;
  text: string | null;
  since: string | null;
}

/** Everything that a pass writes. */
export interface CompletePassRows extends PassRows {
  /** Only `respondedAt` of the head changes, and its version stays: the response has nothing new. */
  isQuiet: boolean;
  /** Stored payloads that are read now. */
  marks: readonly PayloadMark[];
  notices: readonly NoticeEvent[];
  /** Gaps, conflicts or quarantine changed: notices about them must be rebuilt from the rows. */
  changesNotices: boolean;
  /** The new state of the feed's format; null if it did not change. */
  format: { from: FormatState; to: FormatState } | null;
  /** Hours of the house audit that ended, and the running one when a reading is published. */
  audits: readonly AuditRow[];
}

/** The result of a pass. Until the rows are committed, `state` must not replace the state that the pass began with. */
export interface PassResult {
  state: PassState;
  rows: CompletePassRows;
  /** Ids of the response in playing order, null for an item that cannot be read. */
  sequence: readonly (string | null)[];
}

/** A stored round as a replay reads it. */
export interface ReplayRound extends ReplayedRow {
  /** 3: it has another result; 5: an operator revised it (3 if both); 0: neither. No forecast on a disputed one counts. */
  dispute: 0 | 3 | 5;
}

/** The stored rows that the state of a table is made from. */
export interface StoredState {
  table: TableFacts;
  version: bigint;
  head: HeadRow;
  /** Of the head's model; null before the first. */
  snapshot: SnapshotRow | null;
  /** By seq: every round after the snapshot (or the older state) and after the oldest open set. */
  rounds: readonly ReplayRound[];
  /**
   * The sets of `head.openSets` and `head.setSeq`, each with the bands of its cutoff if they differ from the table's.
   */
  sets: readonly (ForecastSetRow & { bands?: readonly Color[] })[];
  /** Forecasts of these sets that are settled. */
  settled: ReadonlySet<bigint>;
  /** The newest {@link KNOWN_ROUNDS} by id, any order. */
  known: readonly (readonly [string, KnownRound])[];
  heldBack: ReadonlyMap<string, HeldBack>;
  isHeldCut: boolean;
  unknownGaps: readonly UnknownGap[];
  notices: ReadonlyMap<NoticeKind, string>;
  format: FormatState;
  hasUnread: boolean;
  /** The published reading; null before the first. */
  reading: PublishedReadingJson | null;
}
