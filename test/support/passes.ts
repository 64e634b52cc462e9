import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import type { Sql } from "../../src/db/client.ts";
import { readSettings } from "../../src/calibration/backtest/range-store.ts";
import { saveModels } from "../../src/forecasts/model/models-store.ts";
import { modelOf } from "../../src/forecasts/model/table-model.ts";
import { pass } from "../../src/pass/compute/pass.ts";
import { listKnown } from "../../src/pass/compute/known-rounds.ts";
import { replay } from "../../src/pass/compute/replay.ts";
import type { HeadRow } from "../../src/pass/compute/rows.ts";
import type { PassResponse } from "../../src/pass/compute/response.ts";
import type { PassState, PassTime, TableFacts } from "../../src/pass/compute/state.ts";
import { passStatements } from "../../src/pass/stores/write-store.ts";
import { multiplierText, numberOf, type CheckedItem } from "../../src/rounds/round.ts";

const ZEROS = "0".repeat(64);

/** A round that a house lists; ids count up from 1 when none is given. */
export interface GivenRound {
  roundId?: string;
  hundredths?: number;
  occurredAt?: string | null;
  verified?: true | null;
  proofHash?: string | null;
}

/** Times of a response; UTC with seven digits. */
export interface GivenTimes {
  requestedAt: string;
  receivedAt: string;
  issuedAt: string;
}

export interface GivenOptions {
  /** Where the last call ended; without it the table must be without rounds. */
  from?: PassState;
  /** Rounds per response, 1 by default. */
  atOnce?: number;
  /**
   * Times of each response. Without them it is polled now, at the time of the database, and every guard holds; with them
   * the guards of the database are off, as for rows of the past.
   */
  times?: (response: number) => GivenTimes;
  /** Stores a payload with each response; true by default when it is polled now. */
  payloads?: boolean;
  /** Circumstances of the passes. */
  at?: Partial<PassTime>;
}

/**
 * Brings rounds into a table by passes, as polls do: each response lists some rounds that are known and the new ones,
 * newest last. Makes a head when the table has none. Of the first response of a table no set follows, since nothing is
 * known of when its rounds were absent.
 */
export async function givePasses(
  sql: Sql,
  table: { id: number },
  rounds: readonly (number | GivenRound)[],
  { from, atOnce = 1, times, payloads = times === undefined, at = {} }: GivenOptions = {},
): Promise<PassState> {
  let state = from ?? (await firstState(sql, table.id));
  const given = rounds.map((round) => (typeof round === "number" ? { hundredths: round } : round));
  let next = (numberOf(state.head.newestRoundId ?? "0") ?? 0n) + 1n;
  const listed = newestItems(state);
  for (let first = 0, response = 0; first < given.length; first += atOnce, response++) {
    const items = given.slice(first, first + atOnce).map((round) => {
      const roundId = round.roundId ?? String(next);
      next = (numberOf(roundId) ?? next) + 1n;
      return checkedItem({ ...round, roundId });
    });
    const asked = times?.(response) ?? (await timesNow(sql));
    const result = pass(state, polled([...listed, ...items], asked, payloads), {
      issuedAt: asked.issuedAt,
      tables: 1,
      maySettle: true,
      mayIssue: true,
      ...at,
    });
    await sql.begin(async (tx) => {
      if (times !== undefined) await tx`set local session_replication_role = replica`;
      for (const statement of passStatements(tx, [result.rows], [])) await statement;
    });
    ({ state } = result);
    listed.push(...items);
    listed.splice(0, listed.length - LISTED);
  }
  return state;
}

/** Known rounds that each response lists before the new ones. */
const LISTED = 3;

/** Times of responses in the past: one every `everyMs` from a moment on, its set issued 60 ms after the request. */
export function timesFrom(startMs: number, everyMs: number): (response: number) => GivenTimes {
  const text = (ms: number) => new Date(ms).toISOString().replace("Z", "0000Z");
  return (response) => {
    const ms = startMs + response * everyMs;
    return { requestedAt: text(ms), receivedAt: text(ms + 50), issuedAt: text(ms + 60) };
  };
}

/** The state of a table without rounds; makes its palette and head when they are missing. */
async function firstState(sql: Sql, tableId: number): Promise<PassState> {
  const settings = await readSettings(sql, tableId);
  const first = modelOf(settings.bands, settings.edge);
  const { name: model } = first;
  await saveModels(sql, [first]);
  await sql`
    with palette as (
      insert into palettes (bands)
      select colors
      from tables
      where id = ${tableId}
      on conflict (bands) do update set bands = excluded.bands
      returning id
    )
    insert into table_heads (table_id, palette, first_model, model, pause_ms)
    select t.id, palette.id, ${model}, ${model}, t.pause_ms
    from tables t
    cross join palette
    where t.id = ${tableId}
    on conflict do nothing`;
  const [row] = await sql<
    (Omit<TableFacts, "tableId" | "resets"> & {
      version: bigint;
      palette: number;
      model: string;
      pauseMs: number;
      lastSeq: bigint;
    })[]
  >`
    select
      t.house_id || '/' || t.game || '/' || t.market as name,
      t.round_ids as "roundIds",
      p.bands,
      (t.settings ->> 'house_edge')::float8 as edge,
      h.version, h.palette, h.model, h.pause_ms as "pauseMs", h.last_seq as "lastSeq"
    from table_heads h
    join tables t on t.id = h.table_id
    join palettes p on p.id = h.palette
    where h.table_id = ${tableId}`;
  if (row === undefined) throw new Error(`there is no table ${tableId}`);
  if (row.lastSeq > 0n) throw new Error(`table ${tableId} has rounds: give the state of the last call as \`from\``);
  const { name, roundIds, bands, edge, version, ...head } = row;
  return emptyPassState({ tableId, name, roundIds, bands, edge, resets: [] }, head, version);
}

/** The state of a table before its first round. */
export function emptyPassState(
  table: TableFacts,
  {
    palette = 1,
    model = modelOf(table.bands, table.edge).name,
    pauseMs = 5000,
  }: Partial<Pick<HeadRow, "palette" | "model" | "pauseMs">> = {},
  version = 0n,
): PassState {
  return replay({
    table,
    version,
    head: emptyHead({ palette, model, pauseMs }),
    snapshot: null,
    rounds: [],
    sets: [],
    settled: new Set(),
    known: [],
    heldBack: new Map(),
    isHeldCut: false,
    unknownGaps: [],
    notices: new Map(),
    format: { badResponses: 0, since: null },
    hasUnread: false,
    reading: null,
  });
}

/** The head of a table before its first round. */
function emptyHead(given: Pick<HeadRow, "palette" | "model" | "pauseMs">): HeadRow {
  return {
    palette: given.palette,
    model: given.model,
    pauseMs: given.pauseMs,
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

/** An item as it is after its proof was checked. */
export function checkedItem({
  roundId = "1",
  hundredths = 187,
  occurredAt = null,
  verified = null,
  proofHash = null,
}: GivenRound): CheckedItem {
  const rawValue = multiplierText(hundredths);
  const raw = { id: roundId, multiplier: rawValue };
  return { ok: true, verified, raw, round: { roundId, hundredths, rawValue, occurredAt, hash: proofHash } };
}

/** A response to a poll that lists these items, newest last. */
export function polled(
  items: readonly CheckedItem[],
  { requestedAt, receivedAt }: Pick<GivenTimes, "requestedAt" | "receivedAt">,
  withPayload = false,
): PassResponse {
  const body = JSON.stringify({ rounds: items.map(({ raw }) => raw), requestedAt });
  return {
    from: "poll",
    requestedAt,
    receivedAt,
    absence: "proven",
    isAhead: false,
    isRepeat: false,
    part: null,
    payload: withPayload
      ? {
          path: "/rounds",
          status: 200,
          contentType: "application/json",
          bytes: Buffer.byteLength(body),
          sha256: createHash("sha256").update(body).digest("hex"),
          body: gzipSync(body),
        }
      : null,
    read: { ok: true, items, feedOrder: "newest_last", refusedByAdapter: 0, isPage: false, anchor: null },
  };
}

function newestItems({ known }: PassState): CheckedItem[] {
  return listKnown(known)
    .filter(([, { late }]) => !late)
    .toSorted(([, a], [, b]) => (a.seq < b.seq ? -1 : 1))
    .slice(-LISTED)
    .map(([roundId, { hundredths, verified, proofHash }]) =>
      checkedItem({ roundId, hundredths, verified: verified === true ? true : null, proofHash }),
    );
}

/** A response that is polled now: later than everything that the database has stored. */
async function timesNow(sql: Sql): Promise<GivenTimes> {
  const [row] = await sql<GivenTimes[]>`
    select
      utc_text(at) as "requestedAt",
      utc_text(at + interval '1 microsecond') as "receivedAt",
      utc_text(at + interval '2 microseconds') as "issuedAt"
    from (select clock_timestamp() as at offset 0) now`;
  if (row === undefined) throw new Error("expected the time from the database");
  return row;
}
