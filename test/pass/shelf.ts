import type { PublishedReadingJson } from "../../src/forecasts/readings/reading-state.ts";
import type { Color } from "../../src/rounds/colors.ts";
import type {
  ConflictRow,
  ForecastSetRow,
  GapRow,
  HeadRow,
  QuarantineRow,
  RoundRow,
  ScoreSetRow,
  SnapshotRow,
} from "../../src/pass/compute/rows.ts";
import {
  KNOWN_ROUNDS,
  type CompletePassRows,
  type PassState,
  type StoredState,
  type TableFacts,
} from "../../src/pass/compute/state.ts";
import { modelOf } from "../../src/forecasts/model/table-model.ts";
import type { FormatState } from "../../src/rounds/notices/format-watch.ts";
import type { NoticeKind } from "../../src/rounds/notices/notices.ts";
import type { HeldBack } from "../../src/rounds/intake.ts";

/** An unread payload, and whether the payload before it had no news. */
interface ShelvedPayload {
  receivedAt: string;
  requestedAt: string;
  previousRequestedAt: string | null;
  sha256: string;
  state: "unread" | "read" | "refused";
  items: number | null;
}

/** What the database keeps of one table, as plain lists. */
export class Shelf {
  table: TableFacts;
  head: HeadRow;
  version: bigint;
  readonly palettes = new Map<number, readonly Color[]>();
  readonly rounds: RoundRow[] = [];
  readonly sets: ForecastSetRow[] = [];
  readonly scoreSets: ScoreSetRow[] = [];
  readonly conflicts: ConflictRow[] = [];
  readonly quarantine: QuarantineRow[] = [];
  readonly payloads: ShelvedPayload[] = [];
  gaps: GapRow[] = [];
  snapshot: SnapshotRow | null = null;
  reading: PublishedReadingJson | null = null;
  format: FormatState;
  readonly notices: Map<NoticeKind, string>;

  constructor({ table, head, version, format, notices }: PassState) {
    this.table = table;
    this.head = head;
    this.version = version;
    this.format = format;
    this.notices = new Map(notices);
    this.palettes.set(head.palette, table.bands);
  }

  /** Keeps the rows of a pass. @throws Error when the head moved since the pass began, as the database does */
  keep(rows: CompletePassRows): void {
    if (rows.version !== this.version) throw new Error(`expected version ${this.version}, got ${rows.version}`);
    if (!rows.isQuiet) this.version += 1n;
    this.head = rows.isQuiet ? { ...this.head, respondedAt: rows.head.respondedAt } : rows.head;
    this.rounds.push(...rows.rounds);
    this.conflicts.push(...rows.conflicts);
    this.quarantine.push(...rows.quarantine);
    this.gaps.push(...rows.gaps.filter(({ fromNumber }) => fromNumber === null));
    const shown = new Set(rows.shownGaps.map(({ beforeRoundId }) => beforeRoundId));
    this.gaps = this.gaps.filter(({ beforeRoundId }) => !shown.has(beforeRoundId));
    this.scoreSets.push(...rows.scoreSets);
    if (rows.forecastSet !== null) this.sets.push(rows.forecastSet);
    if (rows.snapshot !== null) this.snapshot = rows.snapshot;
    if (rows.reading !== null) this.reading = rows.reading.reading as PublishedReadingJson;
    if (rows.format !== null) this.format = rows.format.to;
    for (const { receivedAt, requestedAt, previousRequestedAt, sha256, state, items, kind } of rows.payloads)
      if (kind === "poll") this.payloads.push({ receivedAt, requestedAt, previousRequestedAt, sha256, state, items });
    for (const mark of rows.marks) {
      const payload = this.payloads.find(({ receivedAt }) => receivedAt === mark.receivedAt);
      if (payload !== undefined) Object.assign(payload, { state: mark.state, items: mark.items });
    }
    for (const { kind, text, since } of rows.notices) {
      if (text === null) this.notices.delete(kind);
      else if (!this.notices.has(kind) && since !== null) this.notices.set(kind, since);
    }
  }

  /** Gives the table other bands and with them another model, as an operator's change of settings would. */
  changeBands(bands: readonly Color[]): void {
    const palette = this.head.palette + 1;
    this.palettes.set(palette, bands);
    this.table = { ...this.table, bands };
    this.head = { ...this.head, palette, model: modelOf(bands, this.table.edge).name, nowPpm: [] };
    this.snapshot = null;
    this.version += 1n;
  }

  unread(): ShelvedPayload[] {
    return this.payloads.filter(({ state }) => state === "unread");
  }

  /** Whether the payload before this one was refused or had no items. */
  followsUseless(receivedAt: string): boolean {
    const before = this.payloads.filter((payload) => payload.receivedAt < receivedAt).at(-1);
    return before !== undefined && (before.state === "refused" || before.items === 0);
  }

  /** As the database gives it to `replay`. */
  stored(): StoredState {
    const { table, version, head, snapshot } = this;
    const wanted = new Set([...head.openSets, ...(head.setSeq === null ? [] : [head.setSeq])]);
    const first = head.openSets[0] ?? head.lastSeq;
    const after = first < (snapshot?.seq ?? 0n) ? first : (snapshot?.seq ?? 0n);
    const twice = new Set(this.conflicts.map(({ roundId }) => roundId));
    const openSets = new Set(head.openSets);
    const heldBack = new Map<string, HeldBack>();
    for (const { roundId, code, payloadReceivedAt } of this.quarantine) {
      if (roundId === null) continue;
      const { stuck = false, aheadAt = null } = heldBack.get(roundId) ?? {};
      heldBack.set(roundId, {
        stuck: stuck || code === "stuck_feed",
        aheadAt: aheadAt ?? (code === "far_ahead" ? payloadReceivedAt : null),
        released: false,
      });
    }
    return {
      table,
      version,
      head,
      snapshot,
      rounds: this.rounds
        .filter(({ seq }) => seq > after)
        .map((round) => ({ ...round, dispute: twice.has(round.roundId) ? 3 : 0 })),
      sets: this.sets
        .filter(({ cutoffSeq }) => wanted.has(cutoffSeq))
        .map((set) => {
          const palette = this.roundAt(set.cutoffSeq).palette;
          const bands = this.palettes.get(palette);
          return palette === head.palette || bands === undefined ? set : { ...set, bands };
        }),
      settled: new Set(
        this.scoreSets.flatMap(({ forecastSeqs, cutoffSeqs }) =>
          forecastSeqs.filter((_, at) => openSets.has(cutoffSeqs[at] ?? 0n)),
        ),
      ),
      known: this.rounds.slice(-KNOWN_ROUNDS).map((round) => {
        const { seq, roundId, hundredths, late, verified, proofHash, receivedAt } = round;
        return [roundId, { seq, hundredths, late, verified, proofHash, receivedAt }] as const;
      }),
      heldBack,
      isHeldCut: false,
      unknownGaps:
        table.roundIds === "consecutive"
          ? []
          : this.gaps.toReversed().map(({ afterRoundId, beforeRoundId }) => ({ afterRoundId, beforeRoundId })),
      notices: new Map(this.notices),
      format: this.format,
      hasUnread: this.unread().length > 0,
      reading: this.reading,
    };
  }

  roundAt(seq: bigint): RoundRow {
    const round = this.rounds[Number(seq) - 1];
    if (round === undefined) throw new Error(`expected round ${seq} on the shelf`);
    return round;
  }
}
