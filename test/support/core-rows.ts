import { hash } from "node:crypto";
import { gzipSync } from "node:zlib";
import type { Pipeline, Sql } from "../../src/db/client.ts";
import { createModel } from "../../src/forecasts/model/model.ts";
import { saveModels } from "../../src/forecasts/model/models-store.ts";
import type { ForecastSetRow, HeadRow, PayloadRow, RoundRow, ScoreSetRow } from "../../src/pass/compute/rows.ts";
import type { CompletePassRows as PassRows } from "../../src/pass/compute/state.ts";
import { passStatements } from "../../src/pass/stores/write-store.ts";
import { makeHouse } from "./make.ts";
import { tableEntry } from "./houses.ts";

const ZEROS = "0".repeat(64);
const COLORS = 3;
const K7 = createModel({ thresholds: [200, 1000], edge: 0.01 });

/** A time so many milliseconds from now, as every surface prints it. */
export function fromNow(ms: number): string {
  return new Date(Date.now() + ms).toISOString().replace("Z", "0000Z");
}

/** A hash derived from a text. */
export function hashOf(...words: readonly unknown[]): string {
  return hash("sha256", words.join(" "));
}

/** Puts a house with so many tables in force, each with an empty head in the new core. */
export async function makeCoreTables(
  sql: Sql,
  count: number,
  { pauseMs = 60_000, house = {} }: { pauseMs?: number; house?: Record<string, unknown> } = {},
): Promise<CoreTable[]> {
  const tables = Array.from({ length: count }, (_, n) => tableEntry({ game: `g${n}` }));
  const made = await makeHouse(sql, { ...house, tables });
  await sql`
    delete from table_heads
    where table_id = any(${made.map(({ id }) => id)}::integer[])`;
  await saveModels(sql, [K7]);
  const heads = await sql<{ palette: number }[]>`
    with palette as (
      insert into palettes (bands)
      select colors
      from tables
      where id = ${made[0]?.id ?? 0}
      on conflict (bands) do update set bands = excluded.bands
      returning id
    )
    insert into table_heads (table_id, palette, first_model, model, pause_ms)
    select t.id, palette.id, ${K7.name}, ${K7.name}, ${pauseMs}
    from tables t
    cross join palette
    where t.id = any(${made.map(({ id }) => id)}::integer[])
    returning palette`;
  return made.map(({ id }) => new CoreTable(id, pauseMs, heads[0]?.palette ?? 0));
}

/** A table of the new core as a test fills it: it holds the head and makes rows that fit it. */
export class CoreTable {
  readonly id: number;
  readonly #pauseMs: number;
  readonly #palette: number;
  version = 0n;
  head: HeadRow;
  /** The newest on-time round, and the newest set. */
  newest: RoundRow | null = null;
  newestSet: ForecastSetRow | null = null;

  constructor(id: number, pauseMs: number, palette: number) {
    this.id = id;
    this.#pauseMs = pauseMs;
    this.#palette = palette;
    this.head = emptyHead(palette, pauseMs);
  }

  /** What a pass without any news writes, with what is given. */
  rows(changed: Partial<PassRows> = {}): PassRows {
    return {
      tableId: this.id,
      isQuiet: false,
      version: this.version,
      head: this.head,
      payloads: [],
      rounds: [],
      quarantine: [],
      conflicts: [],
      gaps: [],
      lateNumbers: [],
      shownGaps: [],
      forecastSet: null,
      scoreSets: [],
      snapshot: null,
      reading: null,
      marks: [],
      notices: [],
      changesNotices: false,
      format: null,
      audits: [],
      ...changed,
    };
  }

  /** Writes a pass and takes its head over. */
  async write(pipeline: Pipeline, changed: Partial<PassRows>): Promise<void> {
    const rows = this.rows(changed);
    await pipeline.transact(passStatements(pipeline, [rows], []));
    this.take(rows);
  }

  /** Takes over what was written. */
  take({ head, rounds, forecastSet }: PassRows): void {
    this.version += 1n;
    this.head = head;
    this.newest = rounds.findLast(({ late }) => !late) ?? this.newest;
    this.newestSet = forecastSet ?? this.newestSet;
  }

  /** The next round, requested after everything before; polled on time unless changed. */
  round(changed: Partial<RoundRow> = {}): RoundRow {
    const seq = this.head.lastSeq + 1n;
    const late = changed.late ?? false;
    const roundId = String(1000n + seq);
    return {
      seq,
      ordinal: late ? null : this.head.lastOrdinal + 1n,
      roundId,
      hundredths: 187,
      rawValue: "1.87",
      palette: this.#palette,
      color: 0,
      source: 0,
      // later than a set that was issued in this millisecond
      requestedAt: fromNow(2),
      receivedAt: fromNow(3),
      occurredAt: null,
      absentAt: late ? null : fromNow(-500),
      afterGap: false,
      late,
      verified: null,
      proofHash: null,
      historyHash: hashOf(this.id, roundId),
      ...changed,
    };
  }

  /** The head after a round. */
  afterRound(round: RoundRow): HeadRow {
    const onTime = {
      lastOrdinal: this.head.lastOrdinal + 1n,
      newestSeq: round.seq,
      newestRoundId: round.roundId,
      newestNumber: BigInt(round.roundId),
    };
    return {
      ...this.head,
      lastSeq: round.seq,
      historyHash: round.historyHash,
      lastRoundAt: round.receivedAt,
      ...(!round.late && onTime),
    };
  }

  /** Stores the next round. */
  async play(pipeline: Pipeline, changed: Partial<RoundRow> = {}): Promise<RoundRow> {
    const round = this.round(changed);
    await this.write(pipeline, { rounds: [round], head: this.afterRound(round) });
    return round;
  }

  /** The set after the newest on-time round, issued now: next_color and these windows (all that have ended). */
  set(
    windows: readonly [code: number, horizon: number][] = this.endedWindows(),
    changed: Partial<ForecastSetRow> = {},
  ) {
    if (this.newest === null) throw new Error("a set follows a round");
    const cutoffOrdinal = this.newest.ordinal ?? 0n;
    const codes = new Map(windows);
    const ends = (this.newestSet?.ends ?? Array.from({ length: 3 * COLORS }, () => 0n)).map((end, at) => {
      const horizon = codes.get(at + 1);
      return horizon === undefined ? end : cutoffOrdinal + BigInt(horizon);
    });
    const values = COLORS + windows.length;
    const firstSeq = this.head.forecastSeq + 1n;
    const set: ForecastSetRow = {
      cutoffSeq: this.newest.seq,
      cutoffOrdinal,
      model: K7.name,
      firstSeq,
      issuedAt: fromNow(0),
      pauseMs: this.#pauseMs,
      absentAt: this.newest.absentAt ?? fromNow(0),
      cutoffRoundId: this.newest.roundId,
      historyHash: this.newest.historyHash,
      targetRoundId: String(BigInt(this.newest.roundId) + 1n),
      features: [0, ...windows.map(([code]) => code)],
      horizons: [1, ...windows.map(([, horizon]) => horizon)],
      pPpm: Array.from({ length: values }, (_, at) => [500_000, 400_000, 100_000][at] ?? 800_000),
      basePpm: Array.from({ length: values }, () => 333_333),
      referencePpm: Array.from({ length: 3 * values }, (_, at) => (at % 5 === 0 ? null : 250_000)),
      ends,
      prevHash: this.head.forecastHash,
      hashes: [0, ...windows].map((_, at) => hashOf(this.id, "forecast", firstSeq + BigInt(at))).join(""),
      ...changed,
    };
    return set;
  }

  /** Feature codes of windows that are not open after the newest round, with some horizon for each. */
  endedWindows(): [number, number][] {
    const ordinal = this.newest?.ordinal ?? 0n;
    const ends = this.newestSet?.ends ?? [];
    const all = Array.from({ length: 3 * COLORS }, (_, at): [number, number] => [at + 1, at + 1]);
    return all.filter(([code]) => (ends[code - 1] ?? 0n) <= ordinal);
  }

  /** The head after a set. */
  afterSet(set: ForecastSetRow): HeadRow {
    return {
      ...this.head,
      forecastSeq: this.head.forecastSeq + BigInt(set.features.length),
      forecastHash: set.hashes.slice(-64),
      openSets: [...this.head.openSets, set.cutoffSeq],
      setSeq: set.cutoffSeq,
      nowPpm: set.ends.map(() => 800_000),
    };
  }

  /** Stores a set after the newest round. */
  async issue(pipeline: Pipeline, ...given: Parameters<CoreTable["set"]>): Promise<ForecastSetRow> {
    const set = this.set(...given);
    await this.write(pipeline, { forecastSet: set, head: this.afterSet(set) });
    return set;
  }

  /** Scores of forecasts of sets, by their places in them (0 is next_color), settled by a round. */
  scores(
    round: RoundRow,
    settled: readonly { set: ForecastSetRow; place: number; reason?: number }[],
    changed: Partial<ScoreSetRow> = {},
  ): ScoreSetRow {
    return {
      settledSeq: round.seq,
      settledOrdinal: round.ordinal,
      targetRequestedAt: round.requestedAt,
      scoredAt: fromNow(0),
      forecastSeqs: settled.map(({ set, place }) => set.firstSeq + BigInt(place)),
      cutoffSeqs: settled.map(({ set }) => set.cutoffSeq),
      features: settled.map(({ set, place }) => set.features[place] ?? 0),
      statuses: settled.map(({ reason = 0 }) => (reason === 0 ? 0 : 1)),
      reasons: settled.map(({ reason = 0 }) => reason),
      outcomes: settled.map(({ reason = 0 }) => (reason === 0 ? 0 : null)),
      prevHash: this.head.scoreHash,
      hashes: settled.map((_, at) => hashOf(this.id, "score", round.seq, at)).join(""),
      ...changed,
    };
  }
}

/** A payload that was requested and received now. */
export function payloadRow(changed: Partial<PayloadRow> = {}): PayloadRow {
  const body = JSON.stringify({ rounds: [fromNow(0)] });
  return {
    receivedAt: fromNow(-1),
    kind: "poll",
    requestedAt: fromNow(-5),
    previousRequestedAt: fromNow(-500),
    path: "/rounds",
    status: 200,
    contentType: "application/json",
    bytes: body.length,
    sha256: hash("sha256", body),
    body: gzipSync(body),
    state: "read",
    refusedReason: null,
    error: null,
    items: 1,
    newRounds: 1,
    quarantined: 0,
    ...changed,
  };
}

function emptyHead(palette: number, pauseMs: number): HeadRow {
  return {
    palette,
    model: K7.name,
    pauseMs,
    lastSeq: 0n,
    lastOrdinal: 0n,
    newestSeq: null,
    newestRoundId: null,
    newestNumber: null,
    newestOccurredAt: null,
    sameHundredths: null,
    sameCount: 0,
    historyHash: ZEROS,
    forecastSeq: 0n,
    forecastHash: ZEROS,
    scoreHash: ZEROS,
    firstForecastAt: null,
    firstForecastOrdinal: null,
    proofNumber: null,
    proofHash: null,
    proofOf: null,
    respondedAt: null,
    payloadSha256: null,
    partSha256: null,
    payloadPath: null,
    openSets: [],
    setSeq: null,
    hasEnded: false,
    nowPpm: [],
    lastRoundAt: null,
    lastPolledRoundAt: null,
  };
}
