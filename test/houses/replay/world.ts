import { randomBytes } from "node:crypto";
import normalizeRounds from "../../../jobs/normalize-rounds.ts";
import pollHouse from "../../../jobs/poll-house.ts";
import type { Sql } from "../../../src/db/client.ts";
import { numberOfId } from "../../../src/demo/replay/ids.ts";
import { createReplayHouse, type ReplayHouse } from "../../../src/demo/replay/house.ts";
import type { RecordedRound } from "../../../src/demo/replay/rounds-file.ts";
import { createHouseClient } from "../../../src/houses/polling/http.ts";
import { applyHouses } from "../../../src/houses-file/apply-store.ts";
import type { Passes } from "../../../src/pass/passes.ts";
import { testContext } from "../../support/context.ts";
import { houseEntry, tableEntry } from "../../support/houses.ts";

/** The fastest replay: a month of rounds in less than an hour, so that every published time is near now. */
const SPEED = 1000;
const BEFORE_NOW_MS = 3_600_000;
/** Polls between two reads of their payloads, if the next poll does not depend on it. */
const POLLS_PER_READING = 16;
/** Rounds that a poll catches up with if each has its own page. */
const PAGES_PER_POLL = 5;
const HEADERS = {
  "customer-id": "00000000-0000-4000-8000-000000000001",
  "session-id": "00000000-0000-4000-8000-000000000002",
};

/** How the rounds of a format are requested. */
interface Asking {
  /** New rounds a poll can bring. */
  page: number;
  /** Each round has its own page. */
  byPage?: true;
  /** Times are published in whole units of this many milliseconds; null if none are published. */
  timeUnitMs: number | null;
  /** Every round is published with a time, even if the file has none. */
  hasTimeOfAll?: true;
  /** Ids of the house give the order. */
  counted: boolean;
}

/** By adapter; `json` with the longest page it may have. */
const ASKING: Readonly<Record<string, Asking>> = {
  json: { page: 5_000, timeUnitMs: 1, counted: true },
  blaze: { page: 20, timeUnitMs: 1, hasTimeOfAll: true, counted: false },
  stake: { page: 50, timeUnitMs: 1_000, hasTimeOfAll: true, counted: false },
  bcgame: { page: 50, timeUnitMs: 1, hasTimeOfAll: true, counted: true },
  roobet: { page: 50, timeUnitMs: null, counted: false },
  "lucky-jet": { page: 50, timeUnitMs: null, counted: false },
  bustabit: { page: 1, byPage: true, timeUnitMs: null, counted: true },
  ethercrash: { page: 1, byPage: true, timeUnitMs: 1_000, hasTimeOfAll: true, counted: true },
  "ethcrash-io": { page: 1, byPage: true, timeUnitMs: null, counted: true },
};

/** A round as it is stored. */
export interface StoredRound {
  id: string;
  hundredths: number;
  raw: string;
  color: string;
  late: boolean;
  gap: boolean;
  hash: string | null;
  verified: boolean | null;
  atMs: number | null;
}

/** The result of a replay. */
export interface Replayed {
  /** Ids give the order, so that what is missing is known. */
  counted: boolean;
  /** The first rounds of the file, as many as were requested. */
  rounds: readonly RecordedRound[];
  /** What is stored, in the order of its intake. */
  stored: StoredRound[];
  /** Quarantined items, oldest first. */
  quarantined: { id: string | null; code: string }[];
  /** Gaps that were opened, from and to the missing number; null if ids are opaque. */
  gaps: { from: number | null; to: number | null }[];
  refusedPayloads: number;
  conflicts: number;
  /** The time that was published with a round, as it is stored. */
  atMs(place: number): number | null;
}

/**
 * Replays the first `limit` rounds of a file through the whole pipeline: served over HTTP in the wire format, polled by
 * poll-house through the adapter, stored as received, read and stored by normalize-rounds.
 */
export async function replay(
  { sql, passes }: { sql: Sql; passes: Passes },
  options: { file: string; as: string; limit?: number; colors?: string; chain?: string },
): Promise<Replayed> {
  const { file, as, limit = Infinity, colors = "ours", chain } = options;
  const asking = ASKING[as];
  if (asking === undefined) throw new Error(`expected a format of ${Object.keys(ASKING).join(", ")}, got ${as}`);
  const startMs = Date.now() - BEFORE_NOW_MS;
  let nowMs = startMs;
  const house = await createReplayHouse({ file, as, host: "127.0.0.1", port: 0, speed: SPEED, now: () => nowMs });
  const http = createHouseClient({ version: "0.0.0" });
  try {
    const rounds = house.rounds.slice(0, limit);
    const id = `replay-${randomBytes(4).toString("hex")}`;
    const isCounted = asking.counted && rounds.every((round) => numberOfId(round.id) !== null);
    const roundIds = isCounted ? "consecutive" : "opaque";
    const proof = chain === undefined ? {} : { fairness: { chain } };
    const apply = (feed: Record<string, unknown>) =>
      applyHouses(sql, [entryOf(house, { id, as, feed, colors, roundIds }, proof)]);
    const { context } = testContext(sql, { passes, http, env: { ALLOW_PRIVATE_HOUSES: "1" } });
    const poll = async () => {
      const counts = await pollHouse.run({ house: id, shard: 0 }, context);
      if (counts["failed"] !== 0) throw new Error(`a poll of ${file} as ${as} failed: ${JSON.stringify(counts)}`);
    };
    const read = () => normalizeRounds.run({ house: id }, context);
    if (asking.byPage === true) {
      for (const stretch of stretchesOf(rounds)) {
        await apply({ first_round_id: rounds[stretch.from]?.id });
        for (let place = stretch.from + PAGES_PER_POLL - 1; ; place += PAGES_PER_POLL) {
          nowMs = house.publishedAtMs(Math.min(place, stretch.to));
          await poll();
          await read();
          if (place >= stretch.to) break;
        }
      }
    } else {
      await apply(as === "json" ? { ...JSON_FEED, path: `/rounds?limit=${Math.min(asking.page, rounds.length)}` } : {});
      // pages overlap by one round, as they do when polls are in time
      const last = rounds.length - 1;
      for (let place = Math.min(asking.page, last + 1) - 1, polls = 1; ; place += asking.page - 1, polls += 1) {
        nowMs = house.publishedAtMs(Math.min(place, last));
        await poll();
        if (polls % POLLS_PER_READING === 0) await read();
        if (place >= last) break;
      }
      await poll();
      await read();
    }
    return { rounds, counted: isCounted, ...(await found(sql, id)), atMs: (place) => atMs(house, asking, place) };
  } finally {
    await http.close();
    await house.close();
  }
}

const JSON_FEED = {
  items: "rounds",
  round_id: "id",
  multiplier: "multiplier",
  instant: [0],
  occurred_at: "created_at",
  hash: "hash",
};

/** An entry for houses.yaml that reads a replay house. */
export function entryOf(
  house: { url: string },
  about: { id: string; as: string; feed: Record<string, unknown>; colors: string; roundIds: string },
  proof: { fairness?: Record<string, unknown> } = {},
) {
  const { id, as: adapter, feed, colors, roundIds: round_ids } = about;
  return houseEntry({
    id,
    base_url: house.url,
    timeout_ms: 60_000,
    ...(adapter === "lucky-jet" ? { headers: HEADERS } : {}),
    tables: [tableEntry({ adapter, feed, colors, round_ids, ...proof })],
  });
}

/** Rounds whose ids follow each other and that all have a value: what one can read page by page. */
function stretchesOf(rounds: readonly RecordedRound[]): { from: number; to: number }[] {
  const stretches: { from: number; to: number }[] = [];
  rounds.forEach(({ id, multiplier }, place) => {
    if (multiplier === null) return;
    const open = stretches.at(-1);
    const before = rounds[place - 1];
    const follows = open?.to === place - 1 && Number(id) === Number(before?.id) + 1;
    if (open !== undefined && follows) open.to = place;
    else stretches.push({ from: place, to: place });
  });
  return stretches;
}

/** Only our own format leaves out times that the file does not have. */
function atMs(house: ReplayHouse, { timeUnitMs, hasTimeOfAll }: Asking, place: number): number | null {
  const isTold = hasTimeOfAll === true || house.rounds[place]?.occurredMs != null;
  return timeUnitMs === null || !isTold ? null : Math.floor(house.timeOfMs(place) / timeUnitMs) * timeUnitMs;
}

async function found(sql: Sql, house: string): Promise<Omit<Replayed, "rounds" | "counted" | "atMs">> {
  const [table] = await sql<{ id: number }[]>`select id from tables where house_id = ${house}`;
  const id = table?.id ?? 0;
  const stored = await sql<StoredRound[]>`
    select
      round_id as id, hundredths::float8 as hundredths, raw_value as raw, color, late, after_gap as gap,
      proof_hash as hash, verified, round(extract(epoch from occurred_at) * 1000)::float8 as "atMs"
    from named_rounds
    where table_id = ${id}
    order by seq`;
  const quarantined = await sql<{ id: string | null; code: string }[]>`
    select round_id as id, code
    from quarantine
    where table_id = ${id}
    order by id`;
  const gaps = await sql<{ from: number | null; to: number | null }[]>`
    select from_number::float8 as "from", to_number::float8 as "to"
    from gaps
    where table_id = ${id}
    order by id`;
  const [counts] = await sql<{ refused: number; conflicts: number }[]>`
    select
      (select count(*)::integer from payloads where table_id = ${id} and state = 'refused') as refused,
      (select count(*)::integer from conflicts where table_id = ${id}) as conflicts`;
  return {
    stored: [...stored],
    quarantined: [...quarantined],
    gaps: [...gaps],
    refusedPayloads: counts?.refused ?? -1,
    conflicts: counts?.conflicts ?? -1,
  };
}
